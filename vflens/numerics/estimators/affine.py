"""Affine maps from estimates to the truth: the best one, to measure, and one from a few rows, to attack."""

import numpy as np

from vflens.array import Array
from vflens.words import counted

#: Ridge penalties over the number of rows: from none but for rounding to one that leaves the mean.
_PENALTIES = 10.0 ** np.arange(-12, 4)


def affine_fit(estimate: Array, truth: Array) -> tuple[float, float]:
    """R² and MSE of ``estimate`` (N, m) after the best affine map to ``truth`` (N, d).

    Least squares on the rows at even positions gives the map; both figures come from the odd ones
    (:func:`after_affine_map`), so that a map of many parameters has no advantage. R² = 1 − error / error of
    the even rows' column means, over all columns together. It may be negative, and is NaN if the latter error
    is 0.

    Raises:
        ValueError: fewer than 2 rows.
    """
    error = float(((after_affine_map(estimate, truth) - truth[1::2]) ** 2).mean())
    plain = float(((truth[::2].mean(axis=0) - truth[1::2]) ** 2).mean())
    return (1 - error / plain if plain > 0 else float("nan")), error


def after_affine_map(estimate: Array, truth: Array) -> Array:
    """The odd rows (n // 2, d) of ``estimate`` (n, m) under the affine map that fits the even ones best to
    ``truth`` (n, d).

    Raises:
        ValueError: fewer than 2 rows.
    """
    if len(truth) < 2:
        raise ValueError(
            f"{counted(len(truth), 'row')}: one half fits the map, the other is scored, give at least 2"
        )
    padded = np.column_stack([estimate, np.ones(len(estimate))])
    mapped: Array = padded[1::2] @ np.linalg.lstsq(padded[::2], truth[::2], rcond=None)[0]
    return mapped


def affine_map(factors: Array, truth: Array) -> tuple[Array, Array]:
    """W (p, d) and offset (d,) with ``truth`` (n, d) ≈ ``factors`` (n, p) W + offset, from n ≥ 2 rows.

    Least squares with a ridge penalty on W. Each column of ``truth`` takes the penalty λ of least error on
    left-out rows: with exact factors and n ≥ p + 2 the least one, which is least squares; with few rows or
    noise a larger one. In the centred factors U S Vᵀ the fit is H = 11ᵀ/n + U S²(S² + λ)⁻¹ Uᵀ, and a row that
    was left out has the error of its fit over 1 − H_ii.
    """
    center, offset = factors.mean(axis=0), truth.mean(axis=0)
    U, s, Vt = np.linalg.svd(factors - center, full_matrices=False)
    rank = int((s > 1e-12 * s.max()).sum())
    U, s, Vt = U[:, :rank], s[:rank], Vt[:rank]
    seen = U.T @ (truth - offset)
    penalties = _PENALTIES * len(factors)
    errors = [_left_out(U, s**2 / (s**2 + p), seen, truth - offset) for p in penalties]
    chosen = penalties[np.argmin(errors, axis=0)]
    W = Vt.T @ (s[:, None] / (s[:, None] ** 2 + chosen) * seen)
    return W, offset - center @ W


def _left_out(U: Array, shares: Array, seen: Array, truth: Array) -> Array:
    """Mean squared error (d,) of each row of centred ``truth`` (n, d) under the fit to all others."""
    left = np.maximum(
        1 - 1 / len(U) - (U**2) @ shares, 1e-15
    )  # 0 would be rounding: no row fits itself alone
    errors = (truth - U @ (shares[:, None] * seen)) / left[:, None]
    mean: Array = (errors**2).mean(axis=0)
    return mean
