"""Randomness without state: every stream is a function of a secret and of its purpose.

Without a generator's state a retry, a restart or another transport draws the same numbers, and only the
secret allows it. The receiver is never part of a key: two colluding receivers have one draw, not two to
average.
"""

import hashlib
import json
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence

from vflens.types import Array, Exchange

_JSON = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


def derive(secret: bytes, purpose: str, *names: str | int) -> bytes:
    """A 32-byte key for ``purpose`` and ``names``, BLAKE2b keyed by ``secret`` (at most 64 bytes)."""
    return hashlib.blake2b(_message(purpose, *names), key=secret, digest_size=32).digest()


class Key:
    """A key for ``purpose`` and ``names``, without the secret: only keys below it follow from it.

    It is a BLAKE2b hash of secret and names, and reveals neither. ``Key(s, p, a).derive(b)`` is ``derive(s,
    p, a, b)``.
    """

    __slots__ = ("_taken",)

    def __init__(self, secret: bytes, purpose: str, *names: str | int) -> None:
        self._taken = hashlib.blake2b(_message(purpose, *names)[:-1], key=secret, digest_size=32)

    def derive(self, *names: str | int) -> bytes:
        """The 32-byte key for ``names``, at least one, below this one."""
        hashed = self._taken.copy()
        hashed.update(b"," + _message(*names)[1:])
        return hashed.digest()

    def stream(self, *names: str | int) -> np.random.Generator:
        """The generator for ``names``, at least one, below this key."""
        return generator(self.derive(*names))


def stream(secret: bytes, purpose: str, *names: str | int) -> np.random.Generator:
    """The generator (Philox) for ``purpose`` and ``names`` under ``secret``."""
    return generator(derive(secret, purpose, *names))


def generator(key: bytes) -> np.random.Generator:
    """The generator (Philox) under ``key``, of at least 16 bytes."""
    given: Any = _Given(np.frombuffer(key[:16], dtype="<u8"))
    return np.random.Generator(np.random.Philox(given))


class _Given(ISeedSequence):
    """A key as a seed: ``Philox(key=…)`` asks the operating system for a seed too, which costs more."""

    def __init__(self, key: Array) -> None:
        self._key = key

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Array:
        """The key."""
        return self._key


def masks(key: bytes, size: int) -> Array:
    """Uniform numbers uint64 (size,) of a cipher (ChaCha20) under ``key`` (32 bytes), for masks: who knows
    some of them learns nothing of the others. A key masks one array.
    """
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms  # slow: only who masks loads it

    cipher = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
    return np.frombuffer(cipher.update(bytes(8 * size)), "<u8").astype(np.uint64)


def exchange_names(exchange: Exchange) -> tuple[str | int, ...]:
    """``exchange`` as the names of a key."""
    return (exchange.run, str(exchange.phase), exchange.round, exchange.step)


def rows_digest(rows: Array) -> str:
    """BLAKE2b of ``rows`` int32 (n,), in hexadecimal: other rows, or another order, give other draws."""
    return hashlib.blake2b(rows.astype("<i4", copy=False).tobytes(), digest_size=16).hexdigest()


def secret_from_seed(seed: int | str, *names: str | int) -> bytes:
    """The secret of the party or purpose ``names`` in an experiment with ``seed``."""
    return derive(hashlib.blake2b(str(seed).encode(), digest_size=32).digest(), "secret", *names)


@lru_cache(maxsize=4096, typed=True)  # names only, no secret: one exchange of several models has one message
def _message(*names: str | int) -> bytes:
    return f"[{','.join(map(_in_json, names))}]".encode()


def _in_json(name: str | int) -> str:
    """A name as JSON: for a text alone nobody makes an encoder."""
    return encode_basestring(name) if type(name) is str else _JSON.encode(name)
