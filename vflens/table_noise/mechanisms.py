"""Noise for a released table, x̄ = x + n: the base, the optimal Gaussian and the Laplace baselines (FAR §2).

Every mechanism is frozen data: its mean, covariance and Fisher information describe one row in the table's
units. Noise comes from a counter-based generator: cell k of the table reads number k of each stream. So any
block of rows can be drawn alone, and every division of a table into blocks gives the same bits. Gaussian and
Laplace noise and the rows under them lie on one grid (:mod:`vflens.numerics.discrete_noise`), so that their ε
holds in floating point. The other mechanisms state no ε.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count
from typing import ClassVar, Literal

import numpy as np
from scipy.special import ndtri

from vflens.errors import ConfigError
from vflens.numerics.discrete_noise import GAUSSIAN_STEP, LAPLACE_STEP, Words, gaussian, laplace
from vflens.randomness import derive
from vflens.types import Array


def words(key: bytes, start: int, count: int, *names: int) -> Array:
    """Words start, …, start + count − 1 (uint64) of the stream of ``key`` and ``names``."""
    generator = np.random.Philox(key=np.frombuffer(derive(key, "release", *names)[:16], "<u8"))
    generator.advance(start // 4)  # a counter step makes four numbers
    raw: Array = generator.random_raw(start % 4 + count)[start % 4 :]
    return raw


def words_of_rows(key: bytes, start: int, n_rows: int, width: int) -> Words:
    """A source of words for rows start, …, start + n_rows − 1 of a table; each call reads a new stream."""
    names = chain([()], zip(count(1)))  # the stream of uniforms() has no number
    return lambda: words(key, start * width, n_rows * width, *next(names)).reshape(n_rows, width)


def uniforms(key: bytes, start: int, count: int) -> Array:
    """Numbers start, …, start + count − 1 of the stream of ``key``, in (0, 1), never 0 or 1.

    Each is (k + ½)/2⁵² with k uniform in 0…2⁵² − 1: symmetric about ½, exact in float64.
    """
    raw = words(key, start, count)
    cells: Array = ((raw >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    return cells


def normals(key: bytes, start: int, n_rows: int, width: int) -> Array:
    """Rows start, …, start + n_rows − 1 of a table of ``width`` independent standard normal columns."""
    z: Array = ndtri(uniforms(key, start * width, n_rows * width).reshape(n_rows, width))
    return z


def times(rows: Array, matrix: Array) -> Array:
    """``rows`` (n, p) times ``matrix`` (p, m): the same bits for a row, whatever stands beside it."""
    # column by column: the order of BLAS's additions depends on the number of rows
    product = np.zeros((len(rows), matrix.shape[1]))
    for j in range(len(matrix)):
        product += rows[:, j : j + 1] * matrix[j]
    return product


def positive(name: str, values: Array | float) -> Array:
    """``values`` as float64, all finite and above 0.

    Raises:
        ConfigError: one is not.
    """
    array = np.asarray(values, np.float64)
    if not (np.isfinite(array).all() and (array > 0).all()):
        wrong = array[~(np.isfinite(array) & (array > 0))].flat[0]
        raise ConfigError(f"{name} holds {wrong}: give finite numbers above 0")
    return array


class Mechanism(ABC):
    """The noise of a table with ``width`` columns; all rows have one law but for ``row_factors``."""

    name: ClassVar[str]

    @property
    @abstractmethod
    def width(self) -> int:
        """Number p of columns."""

    @abstractmethod
    def covariance(self) -> Array:
        """V (p, p): the covariance of a row's noise; row i has ``row_factors``[i] · V."""

    @abstractmethod
    def fisher(self) -> Array:
        """I (p, p): the Fisher information of a row about its original, ∫ ∇γ∇γᵀ/γ."""

    @abstractmethod
    def sample(self, start: int, n_rows: int, key: bytes) -> Array:
        """Rows start, …, start + n_rows − 1 of the noise, float64 (n_rows, p).

        ``key`` is the owner's secret: at most 64 bytes, one per release. The same key gives the same noise.
        """

    def release(self, x: Array, start: int, key: bytes) -> Array:
        """x̄: ``x`` (n, p), the rows start, … of the table, plus the noise of ``key``."""
        noisy: Array = x + self.sample(start, len(x), key)
        return noisy

    def finest(self) -> Array:
        """Standard deviation of the noise per column (p,), in its units: float64 must resolve it."""
        deviation: Array = np.sqrt(np.diag(self.covariance()))
        return deviation

    def mean(self) -> Array:
        """E n (p,)."""
        return np.zeros(self.width)

    def cramer_rao(self) -> Array:
        """I⁻¹ (p, p): no locally unbiased estimate of a row has a smaller error covariance; times
        ``row_factors``.
        """
        inverse: Array = np.linalg.inv(self.fisher())
        return inverse

    def row_factors(self, start: int, n_rows: int) -> Array:
        """Factors of covariance and Cramér–Rao bound of these rows, (n_rows,)."""
        return np.ones(n_rows)


@dataclass(frozen=True, eq=False)
class Gaussian(Mechanism):
    """The optimal noise N(0, Π^{-1/2}/√λ) (Thm 2.4): it minimises Tr(Π⁻¹ I) + λ Tr V.

    ``pi``: positive definite, (p, p), or its diagonal (p,). ``lam``: λ > 0, in units x⁻⁴ for Π = I; ×10⁴ in
    λ is ÷10 in standard deviation. Raising Π on a column lowers its noise; noise in proportion to standard
    deviations s needs Π = diag(s⁻⁴).

    Raises:
        ConfigError: Π is not symmetric positive definite, or λ is not positive.
    """

    pi: Array
    lam: float
    name: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        positive("lambda", self.lam)
        object.__setattr__(self, "pi", checked_pi(self.pi))

    @property
    def width(self) -> int:
        return len(self.pi)

    @property
    def diagonal(self) -> bool:
        """Whether the columns' noises are independent."""
        return self.pi.ndim == 1

    def pi_power(self, power: float) -> Array:
        """Π^power, (p, p)."""
        if self.diagonal:
            return np.diag(self.pi**power)
        values, vectors = self._eigen
        raised: Array = (vectors * values**power) @ vectors.T
        return raised

    def covariance(self) -> Array:
        V: Array = self.pi_power(-0.5) / np.sqrt(self.lam)
        return V

    def fisher(self) -> Array:
        information: Array = self.pi_power(0.5) * np.sqrt(self.lam)
        return information

    def cramer_rao(self) -> Array:
        return self.covariance()

    def sample(self, start: int, n_rows: int, key: bytes) -> Array:
        return self._times(gaussian(words_of_rows(key, start, n_rows, self.width)), self._step)

    def release(self, x: Array, start: int, key: bytes) -> Array:
        """The rows with whitened coordinates in whole steps of a grid, plus noise in such steps."""
        steps = np.rint(self._times(x, self._per_step))
        return self._times(steps + gaussian(words_of_rows(key, start, len(x), self.width)), self._step)

    def finest(self) -> Array:
        """For a full Π the step is so small that whitening errs by less than half of it: see
        :mod:`vflens.table_noise.accounting`.
        """
        if self.diagonal:
            return super().finest()
        p = self.width
        return np.full(p, 1 / (p * (p + 2) * GAUSSIAN_STEP * abs(self._per_step).max()))

    def _times(self, rows: Array, matrix: Array) -> Array:
        if self.diagonal:
            scaled: Array = rows * np.diag(matrix)
            return scaled
        return times(rows, matrix)

    @cached_property
    def _eigen(self) -> tuple[Array, Array]:
        values, vectors = np.linalg.eigh(self.pi)
        return values, vectors

    @cached_property
    def _step(self) -> Array:
        """The step of the grid, times the symmetric root of V."""
        step: Array = self.pi_power(-0.25) * (self.lam**-0.25 * GAUSSIAN_STEP)
        return step

    @cached_property
    def _per_step(self) -> Array:
        """Its inverse."""
        inverse: Array = self.pi_power(0.25) * (self.lam**0.25 / GAUSSIAN_STEP)
        return inverse


@dataclass(frozen=True, eq=False)
class Laplace(Mechanism):
    """Independent Laplace noise of scale b_j per column, to compare with :class:`Gaussian` of the same Π and
    λ.

    ``matched`` = "cramer_rao": b_j² = V_jj, the same Cramér–Rao bound, twice the variance. "variance":
    2 b_j² = V_jj, the same variance, half the bound. ``pi`` is diagonal, (p,).

    Raises:
        ConfigError: Π or λ is not positive, or Π is not diagonal.
    """

    pi: Array
    lam: float
    matched: Literal["cramer_rao", "variance"] = "cramer_rao"
    name: ClassVar[str] = "laplace"

    def __post_init__(self) -> None:
        positive("lambda", self.lam)
        pi = checked_pi(self.pi)
        if pi.ndim != 1:
            raise ConfigError(
                "pi is a full matrix: Laplace noise is independent by column, give a diagonal pi"
            )
        if self.matched not in ("cramer_rao", "variance"):
            raise ConfigError(f"matched is {self.matched!r}: give 'cramer_rao' or 'variance'")
        object.__setattr__(self, "pi", pi)

    @property
    def width(self) -> int:
        return len(self.pi)

    @property
    def scale(self) -> Array:
        """The scale b of each column (p,), in its units."""
        b: Array = self.pi**-0.25 * self.lam**-0.25 / np.sqrt(1 if self.matched == "cramer_rao" else 2)
        return b

    def covariance(self) -> Array:
        return np.diag(2 * self.scale**2)

    def fisher(self) -> Array:
        return np.diag(self.scale**-2)

    def cramer_rao(self) -> Array:
        return np.diag(self.scale**2)

    def sample(self, start: int, n_rows: int, key: bytes) -> Array:
        noise: Array = LAPLACE_STEP * self.scale * laplace(words_of_rows(key, start, n_rows, self.width))
        return noise

    def release(self, x: Array, start: int, key: bytes) -> Array:
        """The rows in whole steps of a grid per column, plus noise in such steps."""
        step = LAPLACE_STEP * self.scale
        noisy: Array = step * (np.rint(x / step) + laplace(words_of_rows(key, start, len(x), self.width)))
        return noisy


def checked_pi(pi: Array) -> Array:
    """Π as a diagonal (p,) if it is one, else as a symmetric positive definite matrix (p, p).

    Raises:
        ConfigError: it is not square, not symmetric or not positive definite.
    """
    pi = np.asarray(pi, np.float64)
    if pi.ndim == 2 and pi.shape[0] == pi.shape[1] and np.array_equal(pi, np.diag(np.diag(pi))):
        pi = np.diag(pi)
    if pi.ndim == 1 and pi.size:
        return positive("pi", pi)
    if pi.ndim != 2 or pi.shape[0] != pi.shape[1] or not pi.size:
        raise ConfigError(f"pi has shape {pi.shape}: give a diagonal (p,) or a square matrix (p, p)")
    if not np.isfinite(pi).all() or not np.allclose(pi, pi.T, rtol=1e-12, atol=0):
        raise ConfigError("pi is not a finite symmetric matrix: give a symmetric positive definite one")
    pi = (pi + pi.T) / 2
    values = np.linalg.eigvalsh(pi)
    if values[0] <= 1e-14 * values[-1]:
        raise ConfigError(
            f"pi has eigenvalues from {values[0]:.3g} to {values[-1]:.3g}: give a positive definite matrix"
        )
    return pi
