"""How near the predictions of a number come to it."""

import numpy as np

from vflens.array import Array


def r2(predictions: Array, truth: Array) -> float:
    """R² = 1 − Σ(y − z)²/Σ(y − ȳ)² of ``predictions`` z (n,) of ``truth`` y (n,); NaN where y is constant."""
    total = float(((truth - truth.mean()) ** 2).sum())
    return float("nan") if total == 0 else 1 - float(((truth - predictions) ** 2).sum()) / total


def rmse_stderr(predictions: Array, truth: Array) -> float:
    """The standard error of :func:`rmse` over rows, by the delta method; 0 of one row and of no error.

    That of the mean of n squares e² is their standard deviation over √n, and √ has the slope 1/(2 RMSE).
    """
    square = (truth - predictions) ** 2
    if len(square) < 2 or not square.any():
        return 0.0
    return float(square.std(ddof=1) / np.sqrt(len(square)) / (2 * np.sqrt(square.mean())))


def rmse(predictions: Array, truth: Array) -> float:
    """The root of the mean squared error, in the unit of both (n,)."""
    return float(np.sqrt(((truth - predictions) ** 2).mean()))
