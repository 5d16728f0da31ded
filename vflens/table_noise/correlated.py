"""Noise that leaves the classifier of the SVM (2) unchanged (FAR Thm 2.10), in O(q p).

With ω the multipliers, v = (ω∘y)/‖ω∘y‖ and â = α/‖α‖, the classifier stays the same if N α = 0 and vᵀN = 0.
The paper draws √m·Gaussian in an orthonormal basis of that null space; projecting a full Gaussian, (I − vvᵀ)
N (I − ââᵀ), is the same law and costs two passes, with vᵀN (p numbers) kept between them.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from vflens.errors import ConfigError
from vflens.table_noise.mechanisms import Mechanism, normals, positive
from vflens.types import Array

#: Rows of a block in the first pass; it affects the result's last bits, so it is fixed.
BLOCK = 8192


@dataclass(frozen=True, eq=False)
class Correlated(Mechanism):
    """(I − vvᵀ) N (I − ââᵀ), N of independent N(0, m) cells: ``v`` (q,), ``alpha`` (p,), ``m`` > 0.

    ``v`` need not be normalised; ``alpha`` = 0 drops its constraint. Cell (i, j) has variance
    m (1 − v_i²)(1 − â_j²), row i trace m (1 − v_i²)(p − 1), the table m (q − 1)(p − 1).

    p = 1 or q = 1 leaves no noise; v_i² = 1 leaves row i without noise. The Cramér–Rao bound holds *given*
    the combinations that are released exactly (x_iᵀα and Σ v_i x_i), for an adversary who knows no other row.

    Raises:
        ConfigError: m is not positive, or v or alpha is not a finite vector.
    """

    v: Array
    alpha: Array
    m: float
    name: ClassVar[str] = "correlated"

    def __post_init__(self) -> None:
        positive("m", self.m)
        for field in ("v", "alpha"):
            vector = np.asarray(getattr(self, field), np.float64)
            if vector.ndim != 1 or not vector.size or not np.isfinite(vector).all():
                raise ConfigError(f"{field} has shape {vector.shape}: give a finite vector")
            largest = abs(vector).max() or 1.0  # so that tiny and huge vectors have a norm too
            vector = vector / largest
            object.__setattr__(self, field, vector / (np.linalg.norm(vector) or 1.0))

    @property
    def width(self) -> int:
        return len(self.alpha)

    def covariance(self) -> Array:
        p = self.width
        V: Array = self.m * (np.eye(p) - np.outer(self.alpha, self.alpha))
        return V

    def fisher(self) -> Array:
        """The pseudo-inverse of the covariance: along α the row is released exactly (information ∞)."""
        return self.covariance() / self.m**2

    def cramer_rao(self) -> Array:
        return self.covariance()

    def row_factors(self, start: int, n_rows: int) -> Array:
        """1 − v_i², (n_rows,)."""
        factors: Array = np.maximum(1 - self.v[start : start + n_rows] ** 2, 0.0)
        return factors

    def sample(self, start: int, n_rows: int, key: bytes) -> Array:
        z = normals(key, start, n_rows, self.width)
        z -= self.v[start : start + n_rows, None] * _across_rows(self, key)
        along = np.zeros(n_rows)
        for j in range(self.width):  # in a fixed order: BLAS's order depends on the number of rows
            along += z[:, j] * self.alpha[j]
        z -= along[:, None] * self.alpha
        z *= np.sqrt(self.m)
        return z


@lru_cache(maxsize=2)
def _across_rows(mechanism: Correlated, key: bytes) -> Array:
    """vᵀN (p,) of standard normal N, the first pass."""
    q, p = len(mechanism.v), mechanism.width
    total = np.zeros(p)
    for start in range(0, q, BLOCK):
        rows = min(BLOCK, q - start)
        total += mechanism.v[start : start + rows] @ normals(key, start, rows, p)
    return total
