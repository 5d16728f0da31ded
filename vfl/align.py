"""Sample alignment: keyed digests of row ids, their intersection, the agreed order, the split.

The coordinator lacks the key, so digests are opaque to it; it learns how many rows each party has and
which of them coincide.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from vfl.acts import Identities
from vfl.errors import AlignmentError, ProtocolError
from vfl.types import Array

DIGEST_BYTES = 32
_CHUNK = 1 << 13


@dataclass(frozen=True, eq=False)
class Alignment:
    """``orders``: party → int32 rows of its file in aligned order; ``train``, ``predict``: aligned positions."""

    orders: Mapping[str, Array]
    train: Array
    predict: Array


def digests(ids: Array, key: str) -> Array:
    """HMAC-SHA256 of every id (UTF-8) under ``key``, uint8 (n, 32)."""
    secret = key.encode()
    found = np.empty(len(ids), f"V{DIGEST_BYTES}")
    for start in range(0, len(ids), _CHUNK):  # of Python's objects a chunk at a time
        chunk = ids[start : start + _CHUNK].tolist()
        found[start : start + _CHUNK] = [hmac.digest(secret, i, "sha256") for i in chunk]
    return found.view(np.uint8).reshape(-1, DIGEST_BYTES)


def align(parties: Mapping[str, Identities], predict_share: float, rng: np.random.Generator) -> Alignment:
    """The rows that all parties have, ordered by digest; split as a file says, else drawn.

    Raises:
        ProtocolError: digests of the wrong size, or a split of another length.
        AlignmentError: no common row, a row named twice, contradicting splits, or an empty part.
    """
    keys = {name: _keys(name, p) for name, p in parties.items()}
    names = sorted(keys)
    common = keys[names[0]]
    for name in names[1:]:
        common = np.intersect1d(common, keys[name], assume_unique=True)
    if not len(common):
        counts = ", ".join(f"{n}: {len(keys[n])}" for n in names)
        raise AlignmentError(
            f"the parties share no row ({counts} rows): check id_column and that all use the same alignment_key"
        )
    common = np.sort(common)
    orders = {name: _positions(keys[name], common) for name in names}
    split = _agreed_split(parties, orders)
    if split is None:
        split = _drawn_split(len(common), predict_share, rng)
    train, predict = (np.flatnonzero(split == part).astype(np.int32) for part in (0, 1))
    if not len(train) or not len(predict):
        raise AlignmentError(
            f"{len(train)} training and {len(predict)} prediction rows are left after alignment: both parts need at least one"
        )
    return Alignment(orders, train, predict)


def _keys(name: str, identities: Identities) -> Array:
    found = identities.digests
    if found.dtype != np.uint8 or found.ndim != 2 or found.shape[1] != DIGEST_BYTES:
        raise ProtocolError(
            f"party {name!r} sent digests of shape {found.shape} {found.dtype}: (n, {DIGEST_BYTES}) uint8 is needed"
        )
    if identities.split is not None and (
        identities.split.shape != (len(found),) or identities.split.max(initial=0) > 1
    ):
        raise ProtocolError(
            f"party {name!r} sent a split that is not one 0 or 1 for each of its {len(found)} rows"
        )
    keys = _comparable(found)
    repeated = len(keys) - len(np.unique(keys))
    if repeated:
        raise AlignmentError(f"party {name!r} names {repeated} rows twice: make its id_column unique")
    return keys


def _comparable(found: Array) -> Array:
    """One sortable key a row: the digests in hexadecimal (raw bytes that end in zero would be cut short)."""
    return np.frombuffer(found.tobytes().hex().encode(), f"S{2 * DIGEST_BYTES}")


def _positions(keys: Array, common: Array) -> Array:
    sorter = np.argsort(keys)
    return sorter[np.searchsorted(keys, common, sorter=sorter)].astype(np.int32)


def _agreed_split(parties: Mapping[str, Identities], orders: Mapping[str, Array]) -> Array | None:
    agreed: Array | None = None
    for name in sorted(parties):
        split = parties[name].split
        if split is None:
            continue
        mine = split[orders[name]]
        if agreed is not None and not np.array_equal(agreed, mine):
            raise AlignmentError(
                f"party {name!r} splits rows into train and predict otherwise than the parties before it: agree on one split"
            )
        agreed = mine
    return agreed


def _drawn_split(rows: int, predict_share: float, rng: np.random.Generator) -> Array:
    split = np.zeros(rows, np.uint8)
    split[rng.permutation(rows)[: max(1, round(rows * predict_share))]] = 1
    return split
