"""The quality of an estimate that is known up to an affine map."""

from __future__ import annotations

import numpy as np

from vflens.array import Array


def affine_fit(estimate: Array, truth: Array) -> tuple[float, float]:
    """R² and MSE of ``estimate`` (N, m) after the best affine map to ``truth`` (N, d).

    Least squares on the rows at even positions gives the map; both figures come from the odd ones, so that a
    map of many parameters has no advantage. R² = 1 − error / error of the even rows' column means, over all
    columns together. It may be negative, and is NaN if the latter error is 0.

    Raises:
        ValueError: fewer than 2 rows.
    """
    if len(truth) < 2:
        raise ValueError(f"{len(truth)} rows: one half fits the map, the other is scored, give at least 2")
    padded = np.column_stack([estimate, np.ones(len(estimate))])
    fitted, scored = slice(0, None, 2), slice(1, None, 2)
    map_ = np.linalg.lstsq(padded[fitted], truth[fitted], rcond=None)[0]
    error = float(((padded[scored] @ map_ - truth[scored]) ** 2).mean())
    plain = float(((truth[fitted].mean(axis=0) - truth[scored]) ** 2).mean())
    return (1 - error / plain if plain > 0 else float("nan")), error
