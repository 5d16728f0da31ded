"""What a million rows need is done in bulk, with the bits of the plain definition."""

from __future__ import annotations

import hmac

import numpy as np
import pytest

from vflens.array import distinct
from vflens.protocol.vertical import alignment
from vflens.protocol.vertical.row_ids import Identities
from vflens.recorded import crossings
from vflens.types import Array


@pytest.mark.parametrize("length", [1, 32, 64, 65, 200])
def test_digests_are_those_of_hmac(length: int) -> None:
    ids, secret = np.array([b"", b"a", b"synthetic-000001", b"x" * 150]), bytes(range(1, 201))[:length]
    whole = b"".join(hmac.digest(secret, i, "sha256") for i in ids.tolist())
    assert alignment.digests(ids, secret) == whole


def test_digests_that_begin_alike_are_ordered_by_their_rest() -> None:
    rng = np.random.default_rng(0)
    rows = [bytes(8) + rng.bytes(24) for _ in range(50)] + [rng.bytes(32) for _ in range(50)]
    places = alignment.sorted_places(b"".join(rows))
    assert places.dtype == np.int32
    assert [rows[i] for i in places] == sorted(rows)


def test_parties_with_the_same_rows_are_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = np.array([f"id-{i}".encode() for i in range(40)])
    sent = {
        name: Identities(alignment.digests(ids[::way], b"key"), None) for name, way in (("a", 1), ("b", -1))
    }
    monkeypatch.setattr(np, "searchsorted", None)
    found = alignment.align(sent, 0.2, np.random.default_rng(0))
    assert (found.orders["a"] == 39 - found.orders["b"]).all()


@pytest.mark.parametrize("rows", [[], [3], [2, 2], [5, -1, 5, 0, 2, -1]])
def test_distinct_rows_are_those_of_numpy(rows: list[int]) -> None:
    given = np.array(rows, np.int32)
    found = distinct(given)
    assert found.dtype == given.dtype
    assert (found == np.unique(given)).all()
    assert len(found) == len(set(rows))


def test_a_ledger_sorts_its_rows_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    sorted_: list[int] = []

    def noted(rows: Array) -> Array:
        sorted_.append(len(rows))
        return distinct(rows)

    monkeypatch.setattr(crossings, "distinct", noted)
    count = crossings._Count(most=100)
    monkeypatch.setattr(crossings, "_PENDING", 100)
    line = crossings._Line(
        sender="a",
        phase="train",
        point="embedding",
        nbytes=1,
        withheld=False,
        rows=crossings._Rows(shape=[], offset=0),
    )
    for start in range(0, 20_000, 10):
        count.add(line, np.arange(start, start + 10, dtype=np.int32))
    assert count.rows() == 20_000
    assert len(sorted_) < 20
