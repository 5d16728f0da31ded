"""Sample alignment: digests of row ids, their intersection, the agreed order, the split.

Digests are keyed (mode "hmac") or blinded by all data parties (mode "psi", ``blinding.py``). The coordinator
lacks the keys, so digests are opaque to it; it learns the number of rows of each party and which of them are
common.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Self

import numpy as np

from vflens.errors import AlignmentError, ProtocolError
from vflens.protocol.split import drawn_split
from vflens.protocol.vertical.row_ids import Identities
from vflens.types import AlignMode, Array
from vflens.words import counted

DIGEST_BYTES = 32
HMAC_SECONDS = 7e-6  # of one core for an id of a party (docs/performance.md)
#: Ids of one message: 4 MiB of keyed digests. Blinding 4 MiB would take longer than a call may (limits).
AT_ONCE: Mapping[AlignMode, int] = {"hmac": 1 << 17, "psi": 1 << 14}
#: What else may be the reason where the parties share no row.
_SHARED: Mapping[AlignMode, str] = {"hmac": " and that all use the same alignment_key", "psi": ""}
_CHUNK = 1 << 13
_BLOCK_BYTES = 64  # of SHA-256
_MOST_PARTIES = 256


@dataclass(frozen=True, eq=False)
class Alignment:
    """``orders``: party → int32 rows of its file, aligned. ``train``, ``predict``: aligned positions."""

    orders: Mapping[str, Array]
    train: Array
    predict: Array


def salted(key: bytes, salts: bytes) -> bytes:
    """The key of one run's digests: HMAC-SHA256 of ``salts`` under the ``key`` of the data parties."""
    return hmac.digest(key, b"alignment" + salts, "sha256")


def check_own_salt(salts: bytes, own: bytes, party: str) -> None:
    """Refuse ``salts`` without the ``own`` one of ``party``.

    Every data party adds its own. So the coordinator, which collects them, cannot give two runs the same key.

    Raises:
        ProtocolError: it is not among them, or they cannot be those of parties.
    """
    parts = {salts[start : start + DIGEST_BYTES] for start in range(0, len(salts), DIGEST_BYTES)}
    if own not in parts:
        raise ProtocolError(
            f"the salts of the alignment lack that of {party!r}: collect them anew from all data parties"
        )
    check_salts(salts)


def check_salt(party: str, salt: bytes) -> bytes:
    """The ``salt`` that ``party`` sent.

    Raises:
        ProtocolError: of another length.
    """
    if len(salt) != DIGEST_BYTES:
        raise ProtocolError(
            f"party {party!r} sent a salt of {counted(len(salt), 'byte')}: expected {DIGEST_BYTES}"
        )
    return salt


def check_salts(salts: bytes) -> bytes:
    """``salts``, if they can be those of all data parties.

    Raises:
        ProtocolError: of another length.
    """
    count, rest = divmod(len(salts), DIGEST_BYTES)
    if rest or count > _MOST_PARTIES:
        raise ProtocolError(
            f"salts of {counted(len(salts), 'byte')}: expected {DIGEST_BYTES} of each data party, of "
            f"{_MOST_PARTIES} parties at most"
        )
    return salts


def digests(ids: Array, secret: bytes) -> bytes:
    """HMAC-SHA256 of every id (UTF-8) under ``secret``, one after the other."""
    chunks = (ids[start : start + _CHUNK].tolist() for start in range(0, len(ids), _CHUNK))
    return b"".join(_of_chunk(chunk, *_pads(secret)) for chunk in chunks)


def _pads(secret: bytes) -> tuple[bytes, bytes]:
    """The blocks before the inner and the outer message of HMAC (RFC 2104): 64 bytes each."""
    key = (sha256(secret).digest() if len(secret) > _BLOCK_BYTES else secret).ljust(_BLOCK_BYTES, b"\0")
    return bytes(byte ^ 0x36 for byte in key), bytes(byte ^ 0x5C for byte in key)


def _of_chunk(ids: list[bytes], *pads: bytes) -> bytes:
    """Those of ``ids``; ``hmac.digest`` takes three times as long, since it looks up the hash anew."""
    inner, outer = (sha256(pad).copy for pad in pads)
    found = []
    for name in ids:
        (within := inner()).update(name)
        (around := outer()).update(within.digest())
        found.append(around.digest())
    return b"".join(found)


def sorted_places(found: bytes) -> Array:
    """The rows int32 (n,) in the order of their digests."""
    heads = np.frombuffer(found, ">u8").reshape(-1, DIGEST_BYTES // 8)[:, 0].astype(np.uint64)
    places = np.argsort(heads)
    if _repeated(heads[places]):  # their rests decide
        places = np.argsort(_comparable(found))
    return places.astype(np.int32)


def repeated_digests(found: bytes) -> int:
    """How many of the digests ``found`` equal an earlier one."""
    return _repeated(np.sort(_comparable(found)))


def _repeated(ordered: Array) -> int:
    return int(np.count_nonzero(ordered[1:] == ordered[:-1]))


def check_distinct(party: str, repeated: int) -> None:
    """Refuse a list of ``party`` in which ids are ``repeated``.

    Raises:
        AlignmentError: they are.
    """
    if repeated:
        raise AlignmentError(
            f"party {party!r} names {counted(repeated, 'row')} twice: make its id_column unique"
        )


def align(
    parties: Mapping[str, Identities],
    predict_share: float,
    rng: np.random.Generator,
    mode: AlignMode = "hmac",
) -> Alignment:
    """The common rows, ordered by digest; the split comes from a file or is drawn.

    Raises:
        ProtocolError: digests of the wrong size, or a split of another length.
        AlignmentError: no common row, a repeated row, contradicting splits, or an empty part.
    """
    keys = {name: _Keys.of(name, p) for name, p in parties.items()}
    names = sorted(keys)
    common = keys[names[0]].ordered
    for name in names[1:]:
        common = common[keys[name].rows(common) >= 0]
    if not len(common):
        counts = ", ".join(f"{n}: {len(keys[n].ordered)}" for n in names)
        raise AlignmentError(f"the parties share no row ({counts} rows): check id_column{_SHARED[mode]}")
    orders = {name: keys[name].rows(common) for name in names}
    split = _agreed_split(parties, orders)
    if split is None:
        split = drawn_split(len(common), predict_share, rng)
    train, predict = (np.flatnonzero(split == part).astype(np.int32) for part in (0, 1))
    if not len(train) or not len(predict):
        raise AlignmentError(
            f"{len(train)} training and {counted(len(predict), 'prediction row')} are left after alignment: "
            "both parts need at least one"
        )
    return Alignment(orders, train, predict)


@dataclass(frozen=True, eq=False)
class _Keys:
    """One sortable key a row: ``ordered`` (n,), and the row int32 (n,) of each in its party's file."""

    ordered: Array
    places: Array

    @classmethod
    def of(cls, name: str, identities: Identities) -> Self:
        """Those of the party ``name``.

        Raises:
            ProtocolError, AlignmentError: see :func:`align`.
        """
        _check_sizes(name, identities)
        keys, places = _comparable(identities.digests), sorted_places(identities.digests)
        ordered = keys[places]
        check_distinct(name, _repeated(ordered))
        return cls(ordered, places)

    def rows(self, keys: Array) -> Array:
        """The row int32 of each of ``keys``, −1 where there is none."""
        if not len(self.ordered):
            return np.full(len(keys), -1, np.int32)
        if np.array_equal(keys, self.ordered):  # the parties have the same rows: no search
            return self.places
        at = np.minimum(np.searchsorted(self.ordered, keys), len(self.ordered) - 1)
        return np.where(self.ordered[at] == keys, self.places[at], np.int32(-1))


def _check_sizes(name: str, identities: Identities) -> None:
    rows, rest = divmod(len(identities.digests), DIGEST_BYTES)
    if rest:
        raise ProtocolError(
            f"party {name!r} sent digests of {counted(len(identities.digests), 'byte')}: "
            f"expected {DIGEST_BYTES} bytes a row"
        )
    if identities.split is not None and (
        identities.split.shape != (rows,) or identities.split.max(initial=0) > 1
    ):
        raise ProtocolError(
            f"party {name!r} sent a split that is not one 0 or 1 for each of its {counted(rows, 'row')}"
        )


def _comparable(digests: bytes) -> Array:
    """One string per row, with a nonzero last byte: NumPy would cut zeros off."""
    found = np.frombuffer(digests, np.uint8).reshape(-1, DIGEST_BYTES)
    keys = np.ones((len(found), DIGEST_BYTES + 1), np.uint8)
    keys[:, :DIGEST_BYTES] = found
    return keys.view(f"S{DIGEST_BYTES + 1}").reshape(-1)


def _agreed_split(parties: Mapping[str, Identities], orders: Mapping[str, Array]) -> Array | None:
    agreed: Array | None = None
    for name in sorted(parties):
        split = parties[name].split
        if split is None:
            continue
        mine = split[orders[name]]
        if agreed is not None and not np.array_equal(agreed, mine):
            raise AlignmentError(
                f"party {name!r} splits rows into train and predict otherwise than the parties before it: "
                "agree on one split"
            )
        agreed = mine
    return agreed
