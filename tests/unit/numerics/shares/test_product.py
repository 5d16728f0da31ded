"""Products modulo 2⁶⁴ against whole numbers of Python, which have no size."""

from __future__ import annotations

import numpy as np
import pytest

from vflens.numerics.shares.step import product
from vflens.types import Array


def _by_hand(matrix: Array, columns: Array) -> list[list[int]]:
    turned = list(zip(*columns.tolist(), strict=True))
    return [
        [sum(a * b for a, b in zip(row, column, strict=True)) % 2**64 for column in turned]
        for row in matrix.tolist()
    ]


@pytest.mark.parametrize(("rows", "columns", "logits"), [(1, 1, 1), (7, 5, 1), (5, 40, 3), (64, 33, 10)])
def test_a_product_wraps_and_is_exact(rows: int, columns: int, logits: int) -> None:
    rng = np.random.default_rng(rows)
    matrix, theta, residual = (
        rng.integers(0, 2**64, shape, np.uint64)
        for shape in ((rows, columns), (columns, logits), (rows, logits))
    )
    assert product(matrix, theta).tolist() == _by_hand(matrix, theta)
    assert product(matrix.T, residual).tolist() == _by_hand(matrix.T, residual)
