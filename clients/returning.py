"""People who come back: the prediction row ``again-ID`` is of the person of the training row ``ID``.

A model's answer for somebody whom it was trained on may betray that it was.
"""

from dataclasses import replace

import numpy as np

from vflens.errors import ConfigError
from vflens.tables.table import PREDICT, TRAIN, Table
from vflens.types import Array
from vflens.words import counted

AGAIN = b"again-"


def with_returning(table: Table, count: int, rng: np.random.Generator) -> Table:
    """``table``, which has a split, and after its rows ``count`` of its training rows, drawn, as prediction
    rows.

    Raises:
        ConfigError: fewer rows train, or a row is called so already.
    """
    assert table.split is not None
    train = np.flatnonzero(table.split == TRAIN)
    if count > len(train):
        raise ConfigError(
            f"data.returning = {count}: there are {counted(len(train), 'training row')}, let fewer return"
        )
    if come_again(table.ids).any():
        raise ConfigError(f"data.returning: ids begin with {AGAIN.decode()!r}, rename these rows")
    back = rng.choice(train, count, replace=False)
    found = table.rows(np.concatenate([np.arange(len(table.ids)), back]))
    ids = np.concatenate([table.ids, np.char.add(AGAIN, table.ids[back])])
    split = np.concatenate([table.split, np.full_like(table.split, PREDICT, shape=count)])
    return replace(found, ids=ids, split=split)


def come_again(ids: Array) -> Array:
    """Which of ``ids`` (n,) are those of people who come back, bool (n,)."""
    found: Array = ids.astype(f"S{len(AGAIN)}") == AGAIN  # the first bytes of each
    return found


def trained_before(ids: Array, trained: Array) -> Array:
    """Which of the prediction rows ``ids`` (n,) are of people of the ``trained`` rows' ids, bool (n,)."""
    found: Array = np.isin(ids, np.char.add(AGAIN, trained))
    return found


def again(ids: Array) -> Array:
    """The row int32 (n,) at which the person of each of ``ids`` (n,) comes back; else the row itself."""
    found = np.arange(len(ids), dtype=np.int32)
    if not len(back := np.flatnonzero(come_again(ids))):
        return found
    _, before, at = np.intersect1d(np.char.add(AGAIN, ids), ids[back], return_indices=True)
    found[before] = back[at]
    return found
