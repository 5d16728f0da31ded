"""The rows of each client, dealt evenly or by a Dirichlet law."""

from dataclasses import replace
from typing import Literal

import numpy as np
from pydantic import Field

from vflens.config import Settings
from vflens.errors import ConfigError, DataError
from vflens.protocol.split import drawn_split
from vflens.randomness import stream
from vflens.tables.scaling import Scaler
from vflens.tables.table import PREDICT, TRAIN, Table
from vflens.types import Array, ColumnInfo
from vflens.words import counted


class ClientRows(Settings):
    """Which rows of ``data`` each client holds."""

    kind: Literal["rows"] = "rows"
    alpha: float | None = Field(
        None,
        ge=1e-3,
        le=1e6,
        strict=True,
        description="each class is shared out by a Dirichlet law with this parameter, small ones unevenly "
        "(Hsu et al., 2019); absent: all rows evenly and at random",
    )
    test: Literal["own", "shared"] = Field(
        "own", description="a client's prediction rows: its own share of them, or all of them at every client"
    )


def deal_rows(
    table: Table,
    split: ClientRows,
    clients: tuple[str, ...],
    *,
    secret: bytes,
    predict_share: float = 0.2,
) -> dict[str, Table]:
    """One table per client, with all columns and labels, and its rows in its own order.

    A column without declared bounds gets the extremes of the whole table, so that clients scale alike.
    Without a split ``predict_share`` of all rows are prediction rows. All draws follow from ``secret``.

    Raises:
        ConfigError: a client gets no row to train or to predict.
        DataError: the table has no labels, or numbers.
    """
    if table.labels is None:
        raise DataError("the table has no labels: clients train on them, deal one that has")
    if table.label is not None:
        raise DataError(f"the label {table.label.name!r} is a number: clients train on classes")
    labels = table.labels
    if table.split is None:
        drawn = drawn_split(len(table.ids), predict_share, stream(secret, "deal", "split"))
        table = replace(table, split=drawn)
    assert table.split is not None
    table = replace(table, columns=_bounded(table))
    rng, k, number = stream(secret, "deal", "rows"), len(table.class_names), len(clients)
    shares = class_shares(k, number, split.alpha, rng)
    train_rows, predict_rows = (np.flatnonzero(table.split == use) for use in (TRAIN, PREDICT))
    trained = _cut(labels, train_rows, shares, rng)
    predicted = [predict_rows] * number
    if split.test == "own":
        predicted = _cut(labels, predict_rows, shares, rng)
    dealt = {}
    for client, train, predict in zip(clients, trained, predicted, strict=True):
        if not len(train) or not len(predict):
            raise ConfigError(
                f"client {client!r} gets {len(train)} training and "
                f"{counted(len(predict), 'prediction row')}: name fewer clients, raise split.alpha, or set "
                "split.test = 'shared'"
            )
        rows = stream(secret, "deal", "order", client).permutation(np.concatenate([train, predict]))
        dealt[client] = table.rows(rows)
    return dealt


def class_shares(classes: int, clients: int, alpha: float | None, rng: np.random.Generator) -> Array:
    """The share of each class that each client gets, float64 (classes, clients); rows sum to 1."""
    if alpha is None:
        return np.full((classes, clients), 1 / clients)
    return rng.dirichlet(np.full(clients, alpha), classes)


def _cut(labels: Array, rows: Array, shares: Array, rng: np.random.Generator) -> list[Array]:
    """``rows`` int (n,) shuffled and cut into one part per client, class by class in the given ``shares``.

    With equal shares remainders would all go to the last clients: a class begins where the one before ended.
    """
    parts: list[list[Array]] = [[] for _ in range(shares.shape[1])]
    for number, share in enumerate(shares):
        own = rng.permutation(rows[labels[rows] == number])
        turn = number % len(parts)  # the client that comes first in this class
        ends = np.round(np.cumsum(np.roll(share, -turn)) * len(own)).astype(int)[:-1]
        for place, part in enumerate(np.split(own, ends)):
            parts[(place + turn) % len(parts)].append(part)
    return [np.concatenate(found) for found in parts]


def _bounded(table: Table) -> tuple[ColumnInfo, ...]:
    """The columns, each with its declared bounds or its extremes: no row may lie outside declared ones."""
    if all(c.low is not None and c.high is not None for c in table.columns):
        return table.columns
    scaler = Scaler.fit(table.columns, table.features)
    low, high = scaler.low.tolist(), scaler.high.tolist()
    high = [b if a < b else a + 1.0 for a, b in zip(low, high, strict=True)]  # of a constant column
    return tuple(replace(c, low=a, high=b) for c, a, b in zip(table.columns, low, high, strict=True))
