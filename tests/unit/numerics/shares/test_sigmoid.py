"""The sine series against the sigmoid, against its linear program, and at masks."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog
from scipy.special import expit

from vflens.numerics.fixed_point import decoded, encoded
from vflens.numerics.shares.sigmoid import (
    COEFFICIENTS,
    HARMONICS,
    LARGEST_LOGIT,
    LARGEST_RESIDUAL,
    LOGIT_BITS,
    RESIDUAL_BITS,
    series,
    waves,
)
from vflens.types import Array

_GRID = np.linspace(-LARGEST_LOGIT, LARGEST_LOGIT, 4001)


def _sines(z: Array) -> Array:
    return np.sin(np.pi * np.outer(z, np.arange(1, HARMONICS + 1)) / 16)


def _shared(z: Array, seed: int) -> Array:
    """The series at ``z`` (n,), whose mask is drawn from ``seed``."""
    logits = encoded(z, LOGIT_BITS, 1)[:, None]
    mask = np.random.default_rng(seed).integers(0, 2**64, logits.shape, np.uint64)
    return decoded(series(logits + mask, waves(mask).view(np.uint64)), RESIDUAL_BITS)[:, 0]


def test_no_series_of_twelve_sines_errs_less() -> None:
    z = np.linspace(0, LARGEST_LOGIT, 4001)[1:]
    one, due = np.ones((len(z), 1)), expit(z) - 0.5
    found = linprog(
        np.append(np.zeros(HARMONICS), 1),
        A_ub=np.block([[_sines(z), -one], [-_sines(z), -one]]),
        b_ub=np.append(due, -due),
        bounds=[(None, None)] * HARMONICS + [(0, None)],
    )
    ours = np.abs(_sines(z) @ COEFFICIENTS - due).max()
    assert found.fun <= ours < found.fun * 1.001 < 1.2e-4


def test_the_sines_in_integers_are_the_sigmoid_whatever_the_mask() -> None:
    errors = np.stack([_shared(_GRID, seed) + 0.5 - expit(_GRID) for seed in range(8)])
    assert np.abs(errors).max() < 1.2e-4 + 1.5e-3  # the series, and the rounding of its 24 products
    assert np.abs(errors.mean(axis=0)).max() < 7e-4  # the rounding is right in the mean
    assert np.abs(np.diff(errors, axis=0)).max() > 0  # and drawn with the mask


def test_no_residual_is_larger_than_the_bound() -> None:
    z = np.linspace(-20, 20, 50_001)
    values = np.stack([_shared(z, seed) + 0.5 for seed in range(4)])
    assert 1 <= max(values.max(), 1 - values.min()) < LARGEST_RESIDUAL


def test_the_period_is_32_and_beyond_16_the_series_is_no_sigmoid() -> None:
    assert np.abs(_shared(_GRID, 0) - _shared(_GRID + 32, 0)).max() < 4e-3
    assert _shared(np.array([18.0]), 0)[0] < -0.3


def test_no_sine_of_the_table_is_near_a_tie() -> None:
    """Else two machines could round it to two numbers."""
    exact = np.sin(2 * np.pi * np.arange(1 << 20) / (1 << 20)) * (1 << 14)
    from_tie = np.abs(exact - np.floor(exact) - 0.5)
    assert from_tie.min() > 3e-7 > 1e6 * np.finfo(float).eps * 2**10
