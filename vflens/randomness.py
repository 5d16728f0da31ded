"""Randomness without state: every stream is a function of a secret and of what it is for.

No generator is carried along, so a retry, a restart or another transport draws the same numbers, and
nobody without the secret can redraw them. The receiver is never part of a key: two receivers who
collude hold one draw, not two to average.
"""

from __future__ import annotations

import hashlib
import json

import numpy as np

from vflens.types import Array, Exchange


def derive(secret: bytes, purpose: str, *names: str | int) -> bytes:
    """A 32-byte key for ``purpose`` and ``names``, BLAKE2b keyed by ``secret`` (at most 64 bytes)."""
    message = json.dumps([purpose, *names], separators=(",", ":"), ensure_ascii=False).encode()
    return hashlib.blake2b(message, key=secret, digest_size=32).digest()


def stream(secret: bytes, purpose: str, *names: str | int) -> np.random.Generator:
    """The generator (Philox) for ``purpose`` and ``names`` under ``secret``."""
    key = np.frombuffer(derive(secret, purpose, *names)[:16], dtype="<u8")
    return np.random.Generator(np.random.Philox(key=key))


def exchange_stream(
    secret: bytes, purpose: str, exchange: Exchange, *names: str | int
) -> np.random.Generator:
    """The generator for what is drawn once in ``exchange``: noise, dropout, keys."""
    return stream(secret, purpose, exchange.run, str(exchange.phase), exchange.round, exchange.step, *names)


def rows_digest(rows: Array) -> str:
    """BLAKE2b of ``rows`` int32 (n,), in hexadecimal: what is drawn for other rows, or another order of them,
    differs.
    """
    return hashlib.blake2b(rows.astype("<i4", copy=False).tobytes(), digest_size=16).hexdigest()


def secret_from_seed(seed: int | str, *names: str | int) -> bytes:
    """The secret of the party or purpose ``names`` in an experiment with ``seed``."""
    return derive(hashlib.blake2b(str(seed).encode(), digest_size=32).digest(), "secret", *names)
