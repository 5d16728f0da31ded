"""Truncation against Python's integers, at the edges of its range and inside."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from vflens.numerics.shares.truncation import LIMIT, OFFSET, pair, truncated

_EDGES = [0, 1, 2, 3, 2**37, 2**38 - 1, 2**61, LIMIT - 2, LIMIT - 1]
_VALUES = sorted({sign * edge for edge in _EDGES for sign in (1, -1)})
_MASKS = [0, 1, 2**38 - 1, 2**38, 2**62 - 1, 2**62, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2**38, 2**64 - 1]


def _cases(seed: int) -> tuple[list[int], np.ndarray]:
    """Every value with every mask, and a thousand drawn ones."""
    rng = np.random.default_rng(seed)
    pairs = list(itertools.product(_VALUES, _MASKS))
    drawn = zip(
        rng.integers(-LIMIT + 1, LIMIT, 1000).tolist(),
        rng.integers(0, 2**64, 1000, np.uint64).tolist(),
        strict=True,
    )
    values, masks = zip(*pairs, *drawn, strict=True)
    return list(values), np.array(masks, np.uint64)


@pytest.mark.parametrize("shift", [2, 24, 38, 62])
def test_shares_of_it_are_exact_to_one_unit(shift: int) -> None:
    values, masks = _cases(shift)
    opened = np.array([v % 2**64 for v in values], np.uint64) + OFFSET + masks
    rng = np.random.default_rng(1)
    high, top = pair(masks, shift)
    shares = [rng.integers(0, 2**64, len(values), np.uint64) for _ in range(2)]
    total = truncated(opened, shares[0], shares[1], shift) + truncated(
        opened, high - shares[0], top - shares[1], shift, first=False
    )
    found = total.view(np.int64).tolist()
    assert len(found) > 1000
    assert all(got - (value >> shift) in (0, 1) for got, value in zip(found, values, strict=True))
    np.testing.assert_array_equal(total, truncated(opened, high, top, shift))


def test_it_is_right_in_the_mean() -> None:
    value, shift = 5 * 2**20 + 2**18, 20  # 5.25 units
    masks = np.random.default_rng(0).integers(0, 2**64, 40_000, np.uint64)
    opened = np.uint64(value) + OFFSET + masks
    found = truncated(opened, *pair(masks, shift), shift)
    assert abs(found.mean() - 5.25) < 5 * 0.433 / 200


def test_beyond_the_limit_it_is_wrong() -> None:
    """So that the limit is no idle precaution."""
    masks = np.random.default_rng(0).integers(0, 2**64, 1000, np.uint64)
    opened = np.uint64(3 * LIMIT // 2) + OFFSET + masks
    found = truncated(opened, *pair(masks, 38), 38).view(np.int64)
    assert np.abs(found - (3 * LIMIT // 2 >> 38)).max() > 1
