"""Scaling: bounds before extremes, clipping counted, the inverse."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from vflens.errors import DataError
from vflens.tables.scaling import Scaler
from vflens.types import Array, ColumnInfo

TABLES = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 20), st.integers(1, 5)), elements=st.floats(-1e6, 1e6)
)


def plain(width: int) -> list[ColumnInfo]:
    return [ColumnInfo(f"x{j}") for j in range(width)]


def test_declared_bounds_come_before_the_extremes_of_the_training_rows() -> None:
    scaler = Scaler.fit([ColumnInfo("a", 0, 10), ColumnInfo("b")], np.array([[2.0, 2.0], [4.0, 6.0]]))
    scaled, clipped = scaler.transform(np.array([[5.0, 5.0]]))
    assert scaled.tolist() == [[0.5, 0.75]]
    assert clipped == 0


def test_values_outside_are_clipped_and_counted() -> None:
    scaler = Scaler.fit(plain(2), np.array([[0.0, 0.0], [1.0, 2.0]]))
    scaled, clipped = scaler.transform(np.array([[-1.0, 3.0], [2.0, 1.0]]))
    assert scaled.tolist() == [[0.0, 1.0], [1.0, 0.5]]
    assert clipped == 3


def test_a_constant_column_is_zero_everywhere_and_other_values_count_as_clipped() -> None:
    scaler = Scaler.fit(plain(1), np.full((3, 1), 7.0))
    scaled, clipped = scaler.transform(np.array([[7.0], [9.0]]))
    assert scaled.tolist() == [[0.0], [0.0]]
    assert clipped == 1
    assert scaler.inverse(scaled).tolist() == [[7.0], [7.0]]


def test_public_columns_are_in_scaled_units() -> None:
    columns = [
        ColumnInfo("job", 0, 4, alphabet=(0, 1, 2, 3, 4)),
        ColumnInfo("p", 0, 255, pixel=(3, 4)),
        ColumnInfo("c"),
    ]
    scaled = Scaler.fit(columns, np.array([[1.0, 2.0, 3.0]])).columns()
    assert scaled[0] == ColumnInfo("job", 0.0, 1.0, alphabet=(0.0, 0.25, 0.5, 0.75, 1.0))
    assert scaled[1] == ColumnInfo("p", 0.0, 1.0, pixel=(3, 4))
    assert scaled[2] == ColumnInfo("c", 0.0, 1.0)


def test_a_scaled_alphabet_holds_every_scaled_value_exactly() -> None:
    alphabet = tuple(float(v) for v in range(17))
    values = np.arange(17.0)[:, None]
    for columns in ([ColumnInfo("a", 0, 16, alphabet=alphabet)], [ColumnInfo("a", alphabet=alphabet)]):
        scaler = Scaler.fit(columns, values[3:14])
        scaled, _ = scaler.transform(values)
        assert set(scaled.ravel()) == set(scaler.columns()[0].alphabet or ())


@given(TABLES)
def test_scaling_stays_in_the_box_and_inverts(x: Array) -> None:
    scaler = Scaler.fit(plain(x.shape[1]), x)
    scaled, clipped = scaler.transform(x)
    assert clipped == 0
    assert ((scaled >= 0) & (scaled <= 1)).all()
    # x − low loses at most one rounding of the largest magnitude, division and product one each.
    tolerance = 8 * np.finfo(float).eps * np.maximum(np.abs(scaler.low), np.abs(scaler.high)) + 1e-300
    assert (np.abs(scaler.inverse(scaled) - x) <= tolerance).all()


@given(TABLES, st.floats(0.1, 10))
def test_other_rows_stay_in_the_box_too(x: Array, factor: float) -> None:
    scaler = Scaler.fit(plain(x.shape[1]), x)
    scaled, clipped = scaler.transform(x * factor)
    assert ((scaled >= 0) & (scaled <= 1)).all()
    assert clipped == ((x * factor < x.min(0)) | (x * factor > x.max(0))).sum()


@pytest.mark.parametrize("training", [np.zeros((0, 1)), np.zeros((3, 2)), np.zeros(3)])
def test_rows_of_another_shape_are_refused(training: Array) -> None:
    with pytest.raises(DataError, match=r"scaling 1 column needs training rows of that width, not \("):
        Scaler.fit(plain(1), training)


def test_transforming_other_columns_is_refused() -> None:
    with pytest.raises(DataError, match=r"the scaler has 1 column, the rows have shape \(2, 3\)"):
        Scaler.fit(plain(1), np.zeros((1, 1))).transform(np.zeros((2, 3)))


def test_a_range_that_no_number_holds_is_refused() -> None:
    with pytest.raises(DataError, match=r"^column 'x': its least and largest number are farther apart"):
        Scaler.fit([ColumnInfo("x")], np.array([[-1e308], [1e308]]))


def test_a_low_bound_above_the_high_one_is_refused() -> None:
    with pytest.raises(DataError, match="column 'a': its low bound is above its high one"):
        Scaler.fit([ColumnInfo("a", 3, 2)], np.zeros((1, 1)))


def test_scaling_in_place_is_scaling_bit_by_bit_over_several_chunks() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(40_000, 3)) * [1, 1e-9, 1e9]
    rows = rng.permutation(40_000)[:30_000]
    scaler = Scaler.fit(plain(3), x, rows)
    assert np.array_equal(scaler.low, x[rows].min(axis=0))
    assert np.array_equal(scaler.high, x[rows].max(axis=0))
    scaled, clipped = scaler.transform(x)
    assert clipped > 0
    assert scaler.transform_in_place(x) == clipped
    assert x.tobytes() == scaled.tobytes()
