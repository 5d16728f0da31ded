"""Alignment: keyed digests, their intersection, the agreed order and split."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vflens.errors import AlignmentError, ProtocolError
from vflens.protocol.split import drawn_split
from vflens.protocol.vertical.alignment import align, digests
from vflens.protocol.vertical.row_ids import Identities

KEY = "a key of sixteen or more"
TWO = np.eye(2, 32, dtype=np.uint8).tobytes()  # rows


def _identities(ids: Sequence[str], split: Sequence[int] | None = None, key: str = KEY) -> Identities:
    return Identities(
        digests(np.array([i.encode() for i in ids]), key.encode()),
        None if split is None else np.array(split, np.uint8),
    )


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


def _hmac_by_hand(key: bytes, message: bytes) -> bytes:
    """RFC 2104, written out."""
    key = hashlib.sha256(key).digest() if len(key) > 64 else key
    padded = key.ljust(64, b"\0")
    inner = hashlib.sha256(bytes(b ^ 0x36 for b in padded) + message).digest()
    return hashlib.sha256(bytes(b ^ 0x5C for b in padded) + inner).digest()


@pytest.mark.parametrize("key", [KEY, "k" * 100, "schlüssel-schlüssel"])
def test_digests_are_hmac_sha256(key: str) -> None:
    ids = ["1", "patient-7", "", "žofie"]
    found = digests(np.array([i.encode() for i in ids]), key.encode())
    assert found == b"".join(_hmac_by_hand(key.encode(), i.encode()) for i in ids)


def test_another_key_gives_other_digests() -> None:
    with pytest.raises(
        AlignmentError, match=r"the parties share no row \(a: 2, b: 3 rows\): check id_column"
    ):
        align({"a": _identities(["1", "2"]), "b": _identities(["1", "2", "3"], key=KEY + "!")}, 0.5, _rng())


@settings(max_examples=50)
@given(
    st.lists(st.lists(st.integers(0, 40).map(str), min_size=1, unique=True), min_size=1, max_size=4),
    st.floats(0.05, 0.95),
)
def test_rows_are_the_intersection_of_sets(files: list[list[str]], share: float) -> None:
    names = [f"p{i}" for i in range(len(files))]
    parties = {name: _identities(ids) for name, ids in zip(names, files, strict=True)}
    common = set(files[0]).intersection(*files[1:])
    if len(common) < 2:  # nothing, or no row for one of the two parts
        with pytest.raises(AlignmentError):
            align(parties, share, _rng())
        return
    if not 0 < max(1, round(len(common) * share)) < len(common):
        return
    found = align(parties, share, _rng())
    orders = [[ids[row] for row in found.orders[name]] for name, ids in zip(names, files, strict=True)]
    assert set(orders[0]) == common
    assert len(orders[0]) == len(common)
    assert all(order == orders[0] for order in orders)
    assert orders[0] == sorted(common, key=lambda i: _hmac_by_hand(KEY.encode(), i.encode()))
    assert sorted([*found.train, *found.predict]) == list(range(len(common)))
    assert len(found.predict) == max(1, round(len(common) * share))
    assert {a.dtype for a in (found.train, found.predict, *found.orders.values())} == {np.dtype(np.int32)}


def test_the_order_does_not_depend_on_the_order_in_the_files() -> None:
    ids = [str(i) for i in range(30)]
    shuffled = list(_rng().permutation(ids))
    found = align({"a": _identities(ids), "b": _identities(shuffled)}, 0.3, _rng())
    again = align({"b": _identities(ids[::-1]), "a": _identities(shuffled)}, 0.3, _rng())
    assert [ids[r] for r in found.orders["a"]] == [shuffled[r] for r in again.orders["a"]]
    np.testing.assert_array_equal(found.predict, again.predict)


def test_digests_that_end_in_zero_bytes_stay_apart() -> None:
    """Strings of NumPy drop trailing zero bytes: a key made of them must not."""
    raw = np.zeros((3, 32), np.uint8)
    raw[1, 30], raw[2, 0] = 1, 1
    sent = [Identities(r.tobytes(), None) for r in (raw, raw[::-1])]
    found = align(dict(zip("ab", sent, strict=True)), 0.4, _rng())
    assert found.orders["a"].tolist() == [0, 1, 2]
    assert found.orders["b"].tolist() == [2, 1, 0]


def test_a_row_named_twice_is_refused() -> None:
    with pytest.raises(AlignmentError, match=r"^party 'b' names 1 row twice: make its id_column unique$"):
        align({"a": _identities(["1", "2"]), "b": _identities(["1", "2", "1"])}, 0.5, _rng())


def test_a_party_without_rows_shares_none() -> None:
    with pytest.raises(AlignmentError, match=r"share no row \(a: 0, b: 1 rows\)"):
        align({"a": _identities([]), "b": _identities(["1"])}, 0.5, _rng())


def test_a_split_column_decides() -> None:
    ids = [str(i) for i in range(6)]
    split = [0, 1, 0, 1, 1, 0]
    found = align({"a": _identities(ids[::-1]), "b": _identities(ids, split)}, 0.01, _rng())
    aligned = [ids[r] for r in found.orders["b"]]
    assert {aligned[p] for p in found.predict} == {"1", "3", "4"}
    assert {aligned[p] for p in found.train} == {"0", "2", "5"}


def test_splits_must_agree_on_common_rows_only() -> None:
    a = _identities(["1", "2", "only a"], [0, 1, 1])
    agreeing = _identities(["2", "only b", "1"], [1, 0, 0])
    assert len(align({"a": a, "b": agreeing}, 0.5, _rng()).train) == 1
    with pytest.raises(
        AlignmentError,
        match=r"^party 'b' splits rows into train and predict otherwise than the parties before it: agree on "
        r"one split$",
    ):
        align({"a": a, "b": _identities(["2", "1"], [0, 0])}, 0.5, _rng())


@pytest.mark.parametrize(
    ("split", "sentence"),
    [
        ([0, 0], "2 training and 0 prediction rows are left after alignment"),
        ([1, 1], "0 training and 2 prediction rows are left after alignment"),
    ],
)
def test_both_parts_need_rows(split: list[int], sentence: str) -> None:
    with pytest.raises(AlignmentError, match=sentence):
        align({"a": _identities(["1", "2"], split), "b": _identities(["1", "2"])}, 0.5, _rng())


@pytest.mark.parametrize(
    ("bad", "split", "sentence"),
    [
        (b"1", None, r"^party 'b' sent digests of 1 byte: expected 32 bytes a row$"),
        (b"1" * 63, None, r"sent digests of 63 bytes"),
        (TWO, [0], "^party 'b' sent a split that is not one 0 or 1 for each of its 2 rows$"),
        (TWO, [0, 2], "a split that is not one 0 or 1 for each of its 2 rows"),
    ],
)
def test_malformed_identities_are_refused(bad: bytes, split: list[int] | None, sentence: str) -> None:
    sent = Identities(bad, None if split is None else np.array(split, np.uint8))
    with pytest.raises(ProtocolError, match=sentence):
        align({"a": _identities(["1", "2"]), "b": sent}, 0.5, _rng())


@pytest.mark.parametrize(("share", "predicted"), [(0.001, 1), (0.2, 10), (0.999, 49)])
def test_a_drawn_split_leaves_rows_on_both_sides(share: float, predicted: int) -> None:
    assert drawn_split(50, share, np.random.default_rng(0)).sum() == predicted
