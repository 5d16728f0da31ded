"""Mean and covariance of a table, block by block."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from vflens.errors import DataError
from vflens.types import Array


@dataclass(frozen=True, eq=False)
class TableMoments:
    """Moments of the rows so far: ``count`` q, ``mean`` (p,), ``scatter`` Σ (x − mean)(x − mean)ᵀ (p, p)."""

    count: int
    mean: Array
    scatter: Array

    @classmethod
    def of(cls, x: Array) -> Self:
        """The moments of ``x`` (q, p), finite.

        Raises:
            DataError: x is not a finite matrix with rows.
        """
        x = np.asarray(x, np.float64)
        if x.ndim != 2 or not x.size or not np.isfinite(x).all():
            raise DataError(f"the table has shape {x.shape} or holds NaN or infinity: give finite rows")
        mean = x.mean(axis=0)
        centred = x - mean
        return cls(len(x), mean, centred.T @ centred)

    def add(self, x: Array) -> "TableMoments":
        """These moments and the rows of ``x`` (Chan's update; no cancellation)."""
        more = TableMoments.of(x)
        count = self.count + more.count
        step = more.mean - self.mean
        scatter = self.scatter + more.scatter + np.outer(step, step) * (self.count * more.count / count)
        return TableMoments(count, self.mean + step * (more.count / count), scatter)

    @property
    def covariance(self) -> Array:
        """Scatter / q (p, p): the table is the whole population."""
        K: Array = self.scatter / self.count
        return K

    @property
    def deviation(self) -> Array:
        """Standard deviation by column (p,); 0 for a constant one, to 1e-12 of its mean."""
        s = np.sqrt(np.diag(self.scatter) / self.count)
        return np.where(s <= 1e-12 * abs(self.mean), 0.0, s)
