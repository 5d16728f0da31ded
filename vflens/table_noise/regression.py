"""Linear regression (FAR §3)."""

import numpy as np

from vflens.errors import DataError
from vflens.table_noise.mechanisms import positive
from vflens.types import Array


def linear_regression(x: Array, y: Array, *, sigma: float = 1e-5) -> Array:
    """Argmin σ‖φ‖² + (1/q) Σ (y_i − φᵀx_i)², without intercept, (p,); the paper's σ is 1e-5.

    On average, noise of covariance V on x acts as a ridge V.

    Raises:
        ConfigError: σ is not positive.
        DataError: rows and targets do not fit or are not finite.
    """
    positive("sigma", sigma)
    x, y = _rows(x, y)
    # one least-squares problem, not the normal equations: columns may have sizes 1e-3 and 1e5
    q, p = x.shape
    stacked = np.vstack([x / np.sqrt(q), np.sqrt(sigma) * np.eye(p)])
    phi: Array = np.linalg.lstsq(stacked, np.append(y / np.sqrt(q), np.zeros(p)), rcond=None)[0]
    return phi


def regression_loss(phi: Array, x: Array, y: Array, *, sigma: float = 1e-5) -> float:
    """σ‖φ‖² + (1/q) Σ (y_i − φᵀx_i)²."""
    return float(sigma * phi @ phi + np.mean((y - x @ phi) ** 2))


def _rows(x: Array, y: Array) -> tuple[Array, Array]:
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if x.ndim != 2 or not x.size or y.shape != x.shape[:1]:
        raise DataError(f"x has shape {x.shape} and y {y.shape}: give (q, p) rows and q targets, q, p ≥ 1")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise DataError("rows and targets must be finite: clean the table before training")
    return x, y
