"""The rotation of disclosed weights that misleads half* most at an agreed distortion (VAR §V, cases i and
ii).

Minimise f(R) = (1/d)Tr(P(2K₀Rᵀ − K₀ − R M Rᵀ)) over RᵀR = I with g(R) = (2/(dk))Tr((I − R)WᵀW) = ε. Not
convex: pymanopt minimises an augmented Lagrangian (Nocedal and Wright, §17.3) from several feasible starts in
both components of O(d), since a retraction stays in one. The result is then moved along a one-parameter
group until g = ε to rounding. A local optimum, the best of the starts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import expm
from scipy.optimize import brentq

from vflens.errors import ConfigError, install_extra
from vflens.numerics.linear_system import first_differences, row_projector
from vflens.numerics.theory.distortion_theory import rotated_half_star_gradient, rotated_half_star_mse
from vflens.types import Array

_ROUNDS = 12  # of the augmented Lagrangian
_CLOSE = 1e-6  # relative violation at which the iteration ends
_ANGLES = np.linspace(0, np.pi, 65)
_NEAR = np.geomspace(1e-9, 0.3, 35)
_NEARBY = np.concatenate([-_NEAR[::-1], [0.0], _NEAR])


@dataclass(frozen=True, eq=False)
class RotationProblem:
    """W (k, d), the moments K₀ (d, d) and μ (d,) of x, and ε in (0, 4‖W‖²/(dk)]."""

    W: Array
    K0: Array
    mean: Array
    epsilon: float

    @property
    def equations(self) -> Array:
        """A = J W (k − 1, d)."""
        return first_differences(len(self.W)) @ self.W

    def mse(self, R: Array) -> float:
        """The MSE of half* against W R: quadratic in R, so that its gradients at 0 and R give it."""
        return self._at_zero[0] + 0.5 * float(np.vdot(self._at_zero[1] + self.gradient(R), R))

    def gradient(self, R: Array) -> Array:
        """Its gradient (d, d), affine in R."""
        return self._at_zero[1] - self.curvature(R)

    def curvature(self, V: Array) -> Array:
        """The derivative of −:meth:`gradient` along V (d, d)."""
        left, right = self._quadratic
        curved: Array = -(left @ V @ right)
        return curved

    @cached_property
    def _at_zero(self) -> tuple[float, Array]:
        """MSE and gradient at R = 0: where nothing is quadratic."""
        zero = np.zeros_like(self.K0)
        value = rotated_half_star_mse(self.equations, self.K0, self.mean, zero)
        return value, -rotated_half_star_gradient(self.equations, self.K0, self.mean, zero)

    @cached_property
    def _quadratic(self) -> tuple[Array, Array]:
        """P and (M + Mᵀ)/d: the gradient grows by P R (M + Mᵀ)/d."""
        ramp = np.tile(self.mean - 0.25, (len(self.mean), 1))
        return row_projector(self.equations), (ramp + ramp.T) / len(self.mean)

    def excess(self, R: Array) -> float:
        """g(R)/ε − 1, linear in R."""
        return self._excess_at_zero + float(np.vdot(self.excess_gradient, R))

    @cached_property
    def _excess_at_zero(self) -> float:
        return float(np.sum(self.W**2)) * 2 / (self.W.size * self.epsilon) - 1

    @cached_property
    def excess_gradient(self) -> Array:
        """Its gradient (d, d)."""
        gradient: Array = -2 / (self.W.size * self.epsilon) * self.W.T @ self.W
        return gradient


def best_rotation(problem: RotationProblem, starts: int, rng: np.random.Generator) -> Array:
    """R (d, d), RᵀR = I, g(R) = ε, with the largest MSE that ``starts`` pairs of starts from each of four
    bases found.

    Raises:
        ConfigError: pymanopt is not installed, or no start reached the distortion.
    """
    found = [R for start in _starts(problem, starts, rng) if (R := _improved(problem, start)) is not None]
    if not found:
        raise ConfigError(
            f"distorted_parameters: no rotation with distortion epsilon = {problem.epsilon:g} was found: "
            "choose a smaller one"
        )
    return max(found, key=problem.mse)


def _starts(problem: RotationProblem, count: int, rng: np.random.Generator) -> Iterator[Array]:
    """Feasible points, turned in random planes, both ways, from where g is least and largest in each
    component.

    With u the direction that W weighs least these are I and 1 − 2uuᵀ, and their negatives.
    """
    d = len(problem.K0)
    u = np.linalg.eigh(problem.W.T @ problem.W)[1][:, :1]
    mirror = np.eye(d) - 2 * u @ u.T
    for base in (np.eye(d), mirror, -np.eye(d), -mirror):
        for _ in range(count):
            turn = rng.normal(size=(d, d))
            for sign in (1, -1):
                start = _on_level(problem, base, sign * (turn - turn.T))
                if start is not None:
                    yield start


def _on_level(problem: RotationProblem, R: Array, skew: Array, angles: Array = _ANGLES) -> Array | None:
    """R exp(tS) with g = ε, t in the interval of ``angles`` nearest to 0; S: ``skew``, spectral norm 1."""
    size = np.linalg.norm(skew, 2)
    if size == 0:
        return R if problem.excess(R) == 0 else None
    rates, U = np.linalg.eigh(-1j * skew / size)  # S = U diag(i·rates) Uᴴ
    gram = problem.W.T @ problem.W
    weights = np.einsum("ji,jk,ki->i", U.conj(), gram @ R, U)
    scale = 2 / (problem.W.size * problem.epsilon)

    def excess(t: Any) -> Any:
        turned = np.real(np.exp(1j * np.multiply.outer(t, rates)) @ weights)
        return scale * (np.trace(gram) - turned) - 1

    values = excess(angles)
    changes = np.flatnonzero(values[:-1] * values[1:] <= 0)
    if not len(changes):
        return None
    first = changes[np.abs(angles[changes]).argmin()]
    ends = angles[first : first + 2]
    nearer, low, high = min(ends, key=lambda t: abs(excess(t))), *map(excess, ends)
    # At a root, one angle alone and among others may round to different signs.
    t = brentq(excess, *ends, xtol=1e-15) if low * high < 0 else nearer
    turned: Array = R @ expm(t * skew / size)
    return turned


def _improved(problem: RotationProblem, start: Array) -> Array | None:
    """A stationary point on the level near ``start``, None if it left the level."""
    R, multiplier, weight = start, 0.0, 1.0
    for _ in range(_ROUNDS):
        R = _minimised(problem, R, multiplier, weight)
        excess = problem.excess(R)
        if abs(excess) < _CLOSE:
            break
        multiplier, weight = multiplier + weight * excess, 10 * weight
    descent = R.T @ problem.excess_gradient
    return _on_level(problem, R, descent - descent.T, _NEARBY)


def _minimised(problem: RotationProblem, start: Array, multiplier: float, weight: float) -> Array:
    """A local minimiser of −MSE + y c + (ρ/2)c², c the relative excess of g, y and ρ ``multiplier`` and
    ``weight``.
    """
    try:
        from pymanopt import Problem, function
        from pymanopt.manifolds import Stiefel
        from pymanopt.optimizers import TrustRegions
    except ImportError:
        raise ConfigError(
            f"distorted_parameters needs pymanopt for more than two classes: {install_extra('manifold')}"
        ) from None
    manifold = Stiefel(*start.shape)

    def cost(R: Array) -> float:
        c = problem.excess(R)
        return -problem.mse(R) + multiplier * c + weight / 2 * c**2

    def gradient(R: Array) -> Array:
        slope: Array = -problem.gradient(R)
        return slope + (multiplier + weight * problem.excess(R)) * problem.excess_gradient

    def hessian(R: Array, V: Array) -> Array:
        along = float(np.sum(problem.excess_gradient * V))
        curved: Array = problem.curvature(V) + weight * along * problem.excess_gradient
        return curved

    on = function.numpy(manifold)
    stated = Problem(manifold, on(cost), euclidean_gradient=on(gradient), euclidean_hessian=on(hessian))
    # Few steps a round: the next round goes on from there, and most of the way is made after the multiplier
    # moved.
    optimizer = TrustRegions(verbosity=0, max_iterations=20, min_gradient_norm=1e-6)
    with np.errstate(
        divide="ignore", invalid="ignore"
    ):  # its inner steps divide 0 by 0 at a stationary point
        point: Array = optimizer.run(stated, initial_point=start).point
    return point
