"""Blinded row ids: private set intersection by Diffie-Hellman in Ed25519's group of prime order.

Meadows, 1986; Huberman, Franklin and Hogg, 1999. An id is hashed to an element of the group. Each list goes
round all data parties, and each multiplies every element by a key of its own: what all have multiplied is
equal where ids are equal, whoever multiplied first. Who lacks one of the keys cannot tell the element of an
id from that of another (decisional Diffie-Hellman, the hash a random oracle): a list of candidate ids is of
no use. All parties must follow the protocol.

What it does not hide: the number of a party's ids, which of them are common, and the answers to guesses that
a party puts into its own list.
"""

import hashlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from vflens.errors import ProtocolError
from vflens.protocol.vertical.alignment import DIGEST_BYTES
from vflens.randomness import derive
from vflens.types import Array

HASH_SECONDS, BLIND_SECONDS = 30e-6, 110e-6  # of one core for an id (docs/performance.md)


def blinding_key(secret: bytes, salts: bytes) -> bytes:
    """The key of the party with this ``secret`` in the run whose data parties sent these ``salts``: a number
    below the group's order, 32 bytes.
    """
    from nacl.bindings import crypto_core_ed25519_scalar_reduce as reduced  # only where ids are blinded

    key: bytes = reduced(hashlib.sha512(derive(secret, "blinding", salts.hex())).digest())
    return key


def blinded_ids(ids: Array, key: bytes, salts: bytes) -> bytes:
    """The elements of ``ids`` (n,) in this run under ``key``, 32 bytes each."""
    from nacl.bindings import crypto_core_ed25519_from_uniform, crypto_scalarmult_ed25519_noclamp

    run, named = derive(b"", "row ids", salts.hex()), ids.tolist()

    def multiplied(row: int) -> bytes:
        hashed = hashlib.blake2b(named[row], key=run, digest_size=32).digest()
        element: bytes = crypto_scalarmult_ed25519_noclamp(key, crypto_core_ed25519_from_uniform(hashed))
        return element

    return _over_cores(multiplied, len(named))


def blinded_again(elements: bytes, key: bytes, sender: str) -> bytes:
    """The ``elements`` of ``sender`` multiplied by ``key``, in their order.

    Raises:
        ProtocolError: one is no element of the group, or the neutral one; or bytes are left over.
    """
    from nacl.bindings import crypto_scalarmult_ed25519_noclamp
    from nacl.exceptions import RuntimeError as SodiumError

    count, rest = divmod(len(elements), DIGEST_BYTES)
    if rest:
        raise ProtocolError(
            f"the blinded ids of {sender!r} have {len(elements)} bytes: expected {DIGEST_BYTES} an id"
        )

    def multiplied(row: int) -> bytes:
        try:
            found: bytes = crypto_scalarmult_ed25519_noclamp(
                key, elements[row * DIGEST_BYTES : (row + 1) * DIGEST_BYTES]
            )
        except SodiumError:
            raise ProtocolError(
                f"blinded id {row} of {sender!r} is no element of Ed25519's group of prime order: use the "
                "same version everywhere"
            ) from None
        return found

    return _over_cores(multiplied, count)


def _over_cores(work: Callable[[int], bytes], count: int) -> bytes:
    """``work`` of the rows from 0 to ``count``, in their order; the library holds no lock of Python's."""
    cores = os.cpu_count() or 1
    ends = np.linspace(0, count, cores + 1, dtype=int).tolist()
    with ThreadPoolExecutor(cores) as pool:
        return b"".join(pool.map(lambda part: b"".join(map(work, range(*part))), pairwise(ends)))
