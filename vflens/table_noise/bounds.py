"""Lower bounds of an adversary's error, and the error reached with known mean and covariance.

Per row, with V and I the covariance and Fisher information of the noise, K the covariance of the table:

* Cramér–Rao: I⁻¹. Locally unbiased estimates only; a biased one can be far below it.
* x̄ itself: V + E n (E n)ᵀ.
* The linear estimate of least error, with known mean and covariance: K − K(K + V)⁻¹K.
* van Trees, any estimate, averaged over a prior; here the prior N(mean, K): (I + K⁻¹)⁻¹.

All scale with the row's factor: 1 for i.i.d. noise, 1 − v_i² for correlated noise. For the latter it is exact
for the best estimate from *all* released rows: in a basis that begins with v, one row in that direction has
no noise, and the prior is the same in every basis.
"""

from dataclasses import dataclass

import numpy as np

from vflens.table_noise.mechanisms import Mechanism
from vflens.table_noise.moments import TableMoments
from vflens.types import Array


@dataclass(frozen=True, eq=False)
class ColumnBounds:
    """Mean squared errors by column, (p,), averaged over the rows, in the columns' squared units.

    ``min_row``: the smallest Cramér–Rao bound of a row; ``rows``: the number q of rows.
    ``variance``: of the columns of the table (private data).
    """

    rows: int
    min_row: float
    cramer_rao: Array
    released: Array
    linear: Array
    van_trees: Array
    variance: Array

    @property
    def total(self) -> float:
        """The Cramér–Rao bound summed over the table."""
        return float(self.rows * self.cramer_rao.sum())

    @property
    def variance_share(self) -> Array:
        """Cramér–Rao bound by column as a share of the column's variance; NaN for a constant column."""
        return _ratio(self.cramer_rao, self.variance)

    @property
    def linear_r2(self) -> Array:
        """R² by column of the linear estimate: 1 is exact, 0 the mean's; NaN for a constant column."""
        r2: Array = 1 - _ratio(self.linear, self.variance)
        return r2


def bounds(mechanism: Mechanism, moments: TableMoments) -> ColumnBounds:
    """The bounds of ``mechanism`` on the table that has these ``moments``."""
    factors = mechanism.row_factors(0, moments.count)
    mean_factor = float(factors.mean())
    bound = np.diag(mechanism.cramer_rao())
    second_moment = np.diag(mechanism.covariance()) + mechanism.mean() ** 2
    K = moments.covariance * np.outer(moments.deviation > 0, moments.deviation > 0)
    return ColumnBounds(
        rows=moments.count,
        min_row=float(factors.min() * bound.sum()),
        cramer_rao=mean_factor * bound,
        released=mean_factor * second_moment,
        linear=mean_factor * posterior_variance(K, mechanism.covariance()),
        van_trees=mean_factor * posterior_variance(K, mechanism.cramer_rao()),
        variance=np.diag(K).copy(),
    )


def posterior_variance(K: Array, V: Array) -> Array:
    """The diagonal of K − K(K + V)⁻¹K = K(K + V)⁻¹V, by column; K and V positive semidefinite, of any scale.

    The second form subtracts no large terms: noise of 1 on a column of 1e12 gives an error of 1, not of
    rounding.
    """
    d = np.sqrt(np.diag(K) + np.diag(V))
    d[d == 0] = 1.0
    scale = np.outer(d, d)
    left = np.linalg.lstsq((K + V) / scale, V / scale, rcond=None)[0]
    error = d**2 * np.einsum("ij,ij->j", K / scale, left)
    clipped: Array = np.clip(error, 0, np.minimum(np.diag(K), np.diag(V)))
    return clipped


def _ratio(part: Array, whole: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > 0, part / whole, np.nan)
