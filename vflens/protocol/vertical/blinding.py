"""Blinded row ids: private set intersection by Diffie-Hellman on Curve25519, by x-coordinates alone (X25519).

Meadows, 1986; Huberman, Franklin and Hogg, 1999. An id is hashed to an element of the curve's group of prime
order. Each list goes round all data parties, and each multiplies every element by a key of its own: what all
have multiplied is equal where ids are equal, whoever multiplied first. Who lacks one of the keys cannot tell
the element of an id from that of another (decisional Diffie-Hellman, the hash a random oracle): a list of
candidate ids is of no use. All parties must follow the protocol.

A hash is no x-coordinate as it is. Half of all numbers belong to the curve's twist, and every multiple says
so: a bit of each id. So it is hashed to Ed25519's group of prime order, whose elements have an x-coordinate
here. What arrives may be any number: a key is a multiple of 8 (RFC 7748), of which no multiple of an element
of small order is left, and the twist's own group is as hard.

What it does not hide: the number of a party's ids, which of them are common, and the answers to guesses that
a party puts into its own list.
"""

import hashlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, pairwise

import numpy as np

from vflens.errors import ProtocolError
from vflens.protocol.vertical.alignment import DIGEST_BYTES
from vflens.randomness import derive
from vflens.types import Array

HASH_SECONDS, BLIND_SECONDS = 30e-6, 35e-6  # of one core for an id (docs/performance.md)
_P = 2**255 - 19


def blinding_key(secret: bytes, salts: bytes) -> bytes:
    """The key of the party with this ``secret`` in the run whose data parties sent these ``salts``, 32 bytes,
    of which X25519 takes 251 bits.
    """
    return derive(secret, "blinding", salts.hex())


def blinded_ids(ids: Array, key: bytes, salts: bytes) -> bytes:
    """The elements of ``ids`` (n,) in this run under ``key``, 32 bytes each."""
    from nacl.bindings import (  # only where ids are blinded
        crypto_core_ed25519_from_uniform,
        crypto_scalarmult,
    )

    run, named = derive(b"", "row ids", salts.hex()), ids.tolist()

    def blinded(rows: range) -> bytes:
        hashed = (hashlib.blake2b(named[row], key=run, digest_size=32).digest() for row in rows)
        elements = map(crypto_core_ed25519_from_uniform, hashed)
        return b"".join(crypto_scalarmult(key, u) for u in x_coordinates(list(elements)))

    return _over_cores(blinded, len(named))


def x_coordinates(elements: list[bytes]) -> list[bytes]:
    """For ``elements`` of Ed25519's group of prime order, none of them neutral, u = (1 + y)/(1 − y) on
    Curve25519 (RFC 7748, section 4.1).

    One inversion serves all: of the product of all 1 − y.
    """
    ys = [int.from_bytes(element, "little") % 2**255 for element in elements]  # above is the sign of x
    before = list(accumulate((1 - y for y in ys), lambda product, factor: product * factor % _P, initial=1))
    inverse, found = pow(before.pop(), -1, _P), list[bytes]()
    for y in reversed(ys):
        found.append(((1 + y) * before.pop() * inverse % _P).to_bytes(DIGEST_BYTES, "little"))
        inverse = inverse * (1 - y) % _P
    return found[::-1]


def blinded_again(elements: bytes, key: bytes, sender: str) -> bytes:
    """The ``elements`` of ``sender`` multiplied by ``key``, in their order.

    Raises:
        ProtocolError: one is of small order; or bytes are left over.
    """
    from nacl.bindings import crypto_scalarmult
    from nacl.exceptions import RuntimeError as SodiumError

    count, rest = divmod(len(elements), DIGEST_BYTES)
    if rest:
        raise ProtocolError(
            f"the blinded ids of {sender!r} have {len(elements)} bytes: expected {DIGEST_BYTES} an id"
        )

    def multiplied(row: int) -> bytes:
        try:
            found: bytes = crypto_scalarmult(key, elements[row * DIGEST_BYTES : (row + 1) * DIGEST_BYTES])
        except SodiumError:
            raise ProtocolError(
                f"blinded id {row} of {sender!r} is an element of small order, which neither its "
                "owner nor who blinded it before makes of an id: use the same version everywhere"
            ) from None
        return found

    return _over_cores(lambda rows: b"".join(map(multiplied, rows)), count)


def _over_cores(work: Callable[[range], bytes], count: int) -> bytes:
    """``work`` of the rows from 0 to ``count``, in their order; the library holds no lock of Python's."""
    cores = os.cpu_count() or 1
    ends = np.linspace(0, count, cores + 1, dtype=int).tolist()
    with ThreadPoolExecutor(cores) as pool:
        return b"".join(pool.map(lambda ends: work(range(*ends)), pairwise(ends)))
