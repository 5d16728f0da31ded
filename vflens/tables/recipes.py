"""Three recipes that scale a data set to [0, 1]; each fits on more data than the one before.

=========  =========================================================================================
clean      the default: no step here; bounds are public, scalers are fitted on training rows only
paper      as Rassouli et al. write it: min–max to [0, 1] over *all* rows, prediction rows included
authors    as in their scripts: see each data set's ``as_coded``; labels leak into Bank's columns
=========  =========================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from vflens.tables.scaling import Scaler
from vflens.tables.table import Table
from vflens.types import Array, ColumnInfo


def scaled_on_all_rows(table: Table) -> Table:
    """``table`` min–max scaled over all its rows, without its bounds and its split: 80/20 is drawn."""
    return replace(_own_extremes(table, table.features), split=None)


def scaled_apart(table: Table) -> Table:
    """``table`` with the rows of each part of its split scaled by that part's own extremes."""
    features = np.empty_like(table.features)
    assert table.split is not None
    for part in np.unique(table.split):
        rows = table.split == part
        features[rows] = _own_extremes(table, table.features[rows]).features
    columns = tuple(ColumnInfo(c.name, 0.0, 1.0) for c in table.columns)
    return replace(table, columns=columns, features=features)


def _own_extremes(table: Table, rows: Array) -> Table:
    """``table`` with only the features of ``rows``, scaled by the extremes of these rows."""
    scaler = Scaler.fit([replace(c, low=None, high=None) for c in table.columns], rows)
    return replace(table, columns=scaler.columns(), features=scaler.transform(rows)[0])


def target_encoded(raw: Mapping[str, Array], positive: Array) -> tuple[tuple[ColumnInfo, ...], Array]:
    """Columns of strings as numbers (n, d); text becomes the share of ``positive`` (n,) rows with this text.

    The share is over all rows: labels of prediction rows leak into the features. A column is text if its
    *first* value holds other characters than digits and one point. So a negative first number makes it text.
    """
    encoded = [_numbers(s) if _is_number(s[0]) else _shares(s, positive) for s in raw.values()]
    return tuple(map(ColumnInfo, raw)), np.column_stack(encoded)


def _is_number(first: str) -> bool:
    return first.replace(".", "", 1).isdigit()


def _numbers(strings: Array) -> Array:
    return strings.astype(np.float64)


def _shares(strings: Array, positive: Array) -> Array:
    _, codes = np.unique(strings, return_inverse=True)
    shares: Array = (np.bincount(codes, positive) / np.bincount(codes))[codes]
    return shares
