"""Rows dealt to clients: evenly, or by a Dirichlet law over classes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from horizontal import CLASSES, table
from nonempty import nonempty

from vflens.errors import ConfigError, DataError
from vflens.experiments.run.horizontal.dealt_rows import ClientRows, class_shares, deal_rows
from vflens.experiments.run.horizontal.experiment import Group
from vflens.tables.table import Table

CLIENTS = ("a", "b", "c", "d")
TABLE = table(400, 5, predict=80)


def ids(of: Table, use: int) -> list[bytes]:
    assert of.split is not None
    return [bytes(i) for i in of.ids[of.split == use]]


@pytest.mark.parametrize("alpha", [None, 2.0])
def test_every_row_goes_to_one_client(alpha: float | None) -> None:
    dealt = deal_rows(TABLE, ClientRows(alpha=alpha), CLIENTS, secret=b"s")
    for use in (0, 1):
        assert sorted(i for t in dealt.values() for i in ids(t, use)) == sorted(ids(TABLE, use))
    place = {bytes(i): n for n, i in enumerate(TABLE.ids)}
    for of in dealt.values():
        rows = [place[bytes(i)] for i in of.ids]
        assert np.array_equal(of.features, TABLE.features[rows])
        assert of.labels is not None
        assert TABLE.labels is not None
        assert np.array_equal(of.labels, TABLE.labels[rows])
        assert rows != sorted(rows)
    again = deal_rows(TABLE, ClientRows(alpha=alpha), CLIENTS, secret=b"s")
    assert all(np.array_equal(again[c].ids, dealt[c].ids) for c in CLIENTS)
    other = deal_rows(TABLE, ClientRows(alpha=alpha), CLIENTS, secret=b"t")
    assert not all(np.array_equal(other[c].ids, dealt[c].ids) for c in CLIENTS)


def test_even_shares_differ_by_one_row_a_class() -> None:
    dealt = deal_rows(TABLE, ClientRows(), CLIENTS, secret=b"s")
    for number in range(len(CLASSES)):
        counts = [np.count_nonzero((t.split == 0) & (t.labels == number)) for t in dealt.values()]
        assert max(counts) - min(counts) <= 1
    assert max(len(t.ids) for t in dealt.values()) - min(len(t.ids) for t in dealt.values()) <= 4


@pytest.mark.parametrize("alpha", [0.3, 1.0, 5.0])
def test_the_shares_of_a_class_have_the_moments_of_the_dirichlet_law(alpha: float) -> None:
    """Mean 1/K, variance (1/K)(1 − 1/K)/(Kα + 1), covariance −1/(K²(Kα + 1))."""
    k, draws = 4, 40_000
    shares = class_shares(draws, k, alpha, np.random.default_rng(3))
    assert np.allclose(shares.sum(axis=1), 1)
    variance = (1 / k) * (1 - 1 / k) / (k * alpha + 1)
    assert np.abs(shares.mean(axis=0) - 1 / k).max() < 5 * np.sqrt(variance / draws)
    found = np.cov(shares, rowvar=False)
    assert np.diag(found) == pytest.approx(variance, rel=0.05)
    assert found[~np.eye(k, dtype=bool)] == pytest.approx(-1 / (k**2 * (k * alpha + 1)), rel=0.1)


def test_clients_get_their_shares_of_each_class_to_train_and_to_predict() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 30_000)
    big = replace(table(30_000, 1), labels=labels, split=(rng.random(30_000) < 0.5).astype(np.uint8))
    dealt = deal_rows(big, ClientRows(alpha=0.5), CLIENTS, secret=b"s")
    for number in range(3):
        counts = [
            [np.count_nonzero((t.labels == number) & (t.split == use)) for t in dealt.values()]
            for use in (0, 1)
        ]
        train, predict = (np.array(s) / sum(s) for s in counts)
        assert np.abs(train - predict).max() < 0.001
        assert train.max() - train.min() > 0.1


def test_a_shared_test_set_is_the_same_at_every_client() -> None:
    dealt = deal_rows(TABLE, ClientRows(alpha=0.2, test="shared"), CLIENTS, secret=b"s")
    assert all(sorted(ids(t, 1)) == sorted(ids(TABLE, 1)) for t in nonempty(dealt.values()))


def test_columns_without_bounds_get_those_of_the_table() -> None:
    open_columns = tuple(replace(c, low=None, high=None) for c in TABLE.columns)
    dealt = deal_rows(replace(TABLE, columns=open_columns), ClientRows(), CLIENTS, secret=b"s")
    rows = TABLE.features
    for of in nonempty(dealt.values()):
        assert [c.low for c in of.columns] == rows.min(axis=0).tolist()
        assert [c.high for c in of.columns] == rows.max(axis=0).tolist()


def test_a_client_without_rows_is_refused() -> None:
    many = tuple(f"c{i}" for i in range(200))
    with pytest.raises(ConfigError, match=r"prediction rows: name fewer clients, raise split.alpha"):
        deal_rows(TABLE, ClientRows(), many, secret=b"s")
    with pytest.raises(DataError, match=r"the table has no labels: clients train on them"):
        deal_rows(replace(TABLE, labels=None), ClientRows(), CLIENTS, secret=b"s")


def test_so_many_clients_are_numbered_in_the_order_of_their_names() -> None:
    assert Group(clients=2).names == ("client-1", "client-2")
    names = Group(clients=12).names
    assert list(names) == sorted(names)
    assert len(names) == 12
    with pytest.raises(ValueError, match="from 1 to 1000 clients, not 0"):
        Group(clients=0)
