"""Optimal noise with bounded support (FAR Thm 2.6, Cor. 2.7, corrected): a ground state per axis.

Minimising ϑ⁻¹ I + λ E n² over densities γ on [n̲, n̄] with γ = u² gives, in the original coordinate n,

    u'' + (μ − (λϑ/4) n²) u = 0,   u(n̲) = u(n̄) = 0,   the least μ.

The optimum of the objective is 4μ/ϑ. (11)–(12) of the paper hold in z = Π^{1/2} n with unscaled ends. With t
= n/s, s = (λϑ)^{-1/4}: u'' + (ν − t²/4) u = 0, ν = μ s²; a Galerkin method in combinations of Legendre
polynomials that vanish at the ends solves it to rounding.

For a full Π = Q diag(ϑ) Qᵀ the coordinates are those along its eigenvectors, m = Qᵀn: Tr(Π⁻¹I) and E‖n‖² are
sums over them. So a box in m, which Π^{1/2} maps to a box, has a ground state per eigenvector.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.polynomial import legendre
from scipy.linalg import eigh

from vflens.errors import ConfigError
from vflens.table_noise.mechanisms import Mechanism, checked_pi, positive, times, uniforms
from vflens.types import Array
from vflens.words import counted

#: Basis functions: enough for a state of a thirtieth of its interval; more would only add rounding.
DEGREE = 100
#: Nodes of the distribution function, about 100 to a standard deviation: cubic between them, error 1e-10.
NODES = 2001
#: Distance of two neighbours on [−1, 1].
CELL = 2 / (NODES - 1)
#: Beyond this many s from 0 the density is below e⁻²⁰⁰ and cut.
REACH = 20.0
#: Wider boxes, and boxes narrower than its inverse, have a variance or information beyond float64.
WIDEST = 1e100
#: Support narrower than this share of its distance from 0 is lost in rounding.
NARROWEST = 1e-8
#: Eigenvalues nearer than this share of the larger one are one: rounding turns their eigenvectors.
APART = 1e-6


@dataclass(frozen=True, eq=False)
class GroundState:
    """The ground state of one coordinate on [low, high] with stiffness ``lam`` · ``theta``."""

    low: float
    high: float
    stiffness: float

    @property
    def unit(self) -> float:
        """The unit s = (λϑ)^{-1/4}; as λ → 0 on a fixed box s grows, and the box sets the width."""
        return float(self.stiffness**-0.25)

    @cached_property
    def interval(self) -> tuple[float, float]:
        """Centre and half-width, in the table's units, of the part of the box that holds the density."""
        low, high = self.low / self.unit, self.high / self.unit
        near = min(max(low, 0.0), high)  # the point of the box nearest to 0
        reach = (
            min(REACH, 22.4 * (2 / abs(near)) ** (1 / 3)) if near else REACH
        )  # beside an edge: Airy's width
        low, high = max(low, near - reach), min(high, near + reach)
        return self.unit * (low + high) / 2, self.unit * (high - low) / 2

    @cached_property
    def _solved(self) -> tuple[float, Array]:
        """μ, and the Legendre coefficients of u on [−1, 1] with ∫ u² dn = 1."""
        centre, half = self.interval
        x, w = legendre.leggauss(DEGREE + 10)
        k = np.arange(DEGREE)
        norm = np.sqrt(4 * k + 6)  # ∫ φ_k' φ_l' = δ_kl for φ_k = (L_k − L_{k+2}) / √(4k + 6)
        polynomials = legendre.legvander(x, DEGREE + 1)
        phi = (polynomials[:, :-2] - polynomials[:, 2:]) / norm
        n = centre + half * x
        potential = self.stiffness / 4 * n**2
        floor = potential.min()
        mass = half * (phi * w[:, None]).T @ phi
        energy = np.eye(DEGREE) / half + half * (phi * (w * (potential - floor))[:, None]).T @ phi
        # the largest 1/(μ − floor): the energy is well conditioned, the mass is not
        inverse, vectors = eigh(mass, energy, subset_by_index=[DEGREE - 1, DEGREE - 1])
        c = vectors[:, 0] / norm
        u = np.concatenate([c, [0, 0]]) - np.concatenate([[0, 0], c])
        return float(1 / inverse[0] + floor), u / np.sqrt(self._integral(u, u))

    def _integral(self, u: Array, v: Array, power: int = 0) -> float:
        """∫ n^power u v dn, exact by Gauss's rule."""
        centre, half = self.interval
        x, w = legendre.leggauss(DEGREE + 10)
        n = centre + half * x
        return float(half * np.sum(w * n**power * legendre.legval(x, u) * legendre.legval(x, v)))

    @property
    def energy(self) -> float:
        """μ."""
        return self._solved[0]

    def density(self, n: Array) -> Array:
        """γ(n) = u(n)², 0 outside the box."""
        centre, half = self.interval
        x = (np.asarray(n, np.float64) - centre) / half
        gamma: Array = np.where(abs(x) <= 1, legendre.legval(np.clip(x, -1, 1), self._solved[1]) ** 2, 0.0)
        return gamma

    @cached_property
    def mean(self) -> float:
        """E n."""
        u = self._solved[1]
        return self._integral(u, u, 1)

    @cached_property
    def variance(self) -> float:
        """E (n − E n)²; the second moment, which the optimum weighs, is this plus the squared mean."""
        centre, half = self.interval
        x, w = legendre.leggauss(DEGREE + 10)
        squares = (centre + half * x - self.mean) ** 2
        return float(half * np.sum(w * squares * legendre.legval(x, self._solved[1]) ** 2))

    @cached_property
    def fisher(self) -> float:
        """I = ∫ γ'²/γ = 4 ∫ u'²."""
        slope = legendre.legder(self._solved[1]) / self.interval[1]
        return 4 * self._integral(slope, slope)

    @cached_property
    def _distribution(self) -> Array:
        """F on the cells between ``NODES`` points of [−1, 1]: (4, cells), powers of the distance from the
        left node.

        The cubics have F's exact values and slopes at the nodes.
        """
        half, u = self.interval[1], self._solved[1]
        x = np.linspace(-1, 1, NODES)
        antiderivative = legendre.legint(legendre.legmul(u, u), lbnd=-1)
        F = np.maximum.accumulate(np.clip(half * legendre.legval(x, antiderivative), 0, 1))
        slope = half * legendre.legval(x, u) ** 2
        mean = np.diff(F) / CELL
        bend = (slope[:-1] + slope[1:] - 2 * mean) / CELL
        return np.stack([F[:-1], slope[:-1], (mean - slope[:-1]) / CELL - bend, bend / CELL])

    def quantile(self, probability: Array) -> Array:
        """F⁻¹ for probabilities in (0, 1), by two Newton steps inside the cell of F's table."""
        F, tiny = self._distribution, np.finfo(float).tiny
        cell = np.clip(np.searchsorted(F[0], probability) - 1, 0, NODES - 2)
        F_left, c1, c2, c3 = F[:, cell]
        wanted = probability - F_left
        rise = c1 + CELL * (c2 + CELL * c3)
        t = np.clip(wanted / np.maximum(rise, tiny), 0, CELL)
        for _ in range(2):
            slope = c1 + t * (2 * c2 + 3 * t * c3)
            step = (t * (c1 + t * (c2 + t * c3)) - wanted) / np.maximum(slope, tiny)
            t = np.clip(t - step, 0, CELL)
        centre, half = self.interval
        n: Array = np.clip(centre + half * (CELL * cell - 1 + t), self.low, self.high)
        return n


@dataclass(frozen=True, eq=False)
class Bounded(Mechanism):
    """Independent noise on [lower_j, upper_j] that minimises Σ_j (I_jj/ϑ_j + λ E n_j²), ϑ = ``pi``.

    Of a full Π (p, p) the box lies along the eigenvectors, in the order of rising eigenvalues, each with its
    (first) largest entry above 0: the noise of column i is Σ_j Q_ij m_j, m_j on [lower_j, upper_j].

    Its mean is not 0 unless the box is symmetric about 0; subtracting it afterwards is not the optimum. x̄
    may leave the range of the data and is not the best unbiased estimate. As the box grows: N(0, 1/√(λϑ)). As
    λ → 0 the box alone decides (cos²).

    Raises:
        ConfigError: an empty box, other lengths, Π or λ not positive, or a full Π with two eigenvalues nearer
            than 1e-6 of themselves, which leave the box's axes open.
    """

    lower: Array
    upper: Array
    pi: Array
    lam: float
    name: ClassVar[str] = "bounded"

    def __post_init__(self) -> None:
        positive("lambda", self.lam)
        object.__setattr__(self, "pi", checked_pi(self.pi))
        try:
            lower = np.broadcast_to(np.asarray(self.lower, np.float64), self.width)
            upper = np.broadcast_to(np.asarray(self.upper, np.float64), self.width)
        except ValueError:
            raise ConfigError(
                f"lower and upper have {np.size(self.lower)} and {counted(np.size(self.upper), 'number')}, "
                f"the table {counted(self.width, 'column')}: give one each, or one for all"
            ) from None
        positive("lambda · pi", self.lam * self._axes[0])
        if not ((abs(lower) < WIDEST) & (abs(upper) < WIDEST) & (upper - lower > 1 / WIDEST)).all():
            raise ConfigError(
                f"lower and upper: give numbers below {WIDEST:g} with lower below upper, by at least "
                f"{1 / WIDEST:g}, in every column"
            )
        for name, value in (("lower", lower), ("upper", upper)):
            object.__setattr__(self, name, value)
        for state in self.states:
            centre, half = state.interval
            if half <= NARROWEST * abs(centre):
                raise ConfigError(
                    f"lower {state.low:g} and upper {state.high:g} are {abs(centre) / state.unit:.3g} "
                    "deviations of unbounded noise away from 0: move the box nearer to 0, or lower lambda"
                )

    @property
    def width(self) -> int:
        return len(self.pi)

    @cached_property
    def _axes(self) -> tuple[Array, Array]:
        """ϑ (p,), and the directions of the box in the columns of (p, p)."""
        if self.pi.ndim == 1:
            return self.pi, np.eye(self.width)
        values, vectors = np.linalg.eigh(self.pi)
        if (np.diff(values) <= APART * values[1:]).any():
            raise ConfigError(
                f"pi has eigenvalues {', '.join(f'{v:.6g}' for v in values)}: two that are equal leave open "
                "along which directions the box lies, give other entries or a diagonal pi"
            )
        sizes = abs(vectors)
        largest = (sizes > (1 - APART) * sizes.max(axis=0)).argmax(axis=0)  # the first of equal ones
        return values, vectors * np.sign(vectors[largest, np.arange(self.width)])

    @cached_property
    def states(self) -> tuple[GroundState, ...]:
        """One state per axis; axes with equal boxes share one."""
        made: dict[tuple[float, float, float], GroundState] = {}
        stiffness = self.lam * self._axes[0]
        keys = zip(self.lower.tolist(), self.upper.tolist(), stiffness.tolist(), strict=True)
        return tuple(made.setdefault(key, GroundState(*key)) for key in keys)

    def mean(self) -> Array:
        mean: Array = self._axes[1] @ [s.mean for s in self.states]
        return mean

    def covariance(self) -> Array:
        return self._along([s.variance for s in self.states])

    def fisher(self) -> Array:
        return self._along([s.fisher for s in self.states])

    def sample(self, start: int, n_rows: int, key: bytes) -> Array:
        u = uniforms(key, start * self.width, n_rows * self.width).reshape(n_rows, self.width)
        drawn = np.column_stack([s.quantile(u[:, j]) for j, s in enumerate(self.states)])
        return drawn if self.pi.ndim == 1 else times(drawn, self._axes[1].T)

    def _along(self, values: list[float]) -> Array:
        """The matrix that has ``values`` along the axes."""
        axes = self._axes[1]
        matrix: Array = (axes * values) @ axes.T
        return matrix
