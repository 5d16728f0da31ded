"""A release that keeps the SVM classifier (FAR Thm 2.10), checked by solving the released table again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vflens.table_noise.correlated import Correlated
from vflens.table_noise.svm import SvmSolution, solve_svm
from vflens.types import Array

#: The released table keeps the classifier when α, β and ξ come out again to this relative precision.
PRESERVED = 1e-6


@dataclass(frozen=True, eq=False)
class Preserving:
    """A release and its check; the claim is ``preserved``, and ``change`` its size.

    The receiver gets the same classifier only with the same θ, ρ and labels, all rows, and every digit of
    the file: no scaling, splitting or rounding (17 digits, or binary float64).
    """

    mechanism: Correlated
    solution: SvmSolution
    change: float

    @property
    def preserved(self) -> bool:
        """Whether the release may be called classifier-preserving: ω is exact, and the same classifier came
        out.
        """
        return self.solution.polished and self.change <= PRESERVED


def preserving_noise(
    x: Array, y: Array, *, theta: float, rho: float, m: float
) -> tuple[Correlated, SvmSolution]:
    """The correlated noise of ``x`` (q, p), ``y`` (q,) in {−1, +1}, and the classifier that it keeps."""
    solution = solve_svm(x, y, theta=theta, rho=rho)
    return Correlated(solution.multipliers * y, solution.alpha, m), solution


def release_preserving(
    x: Array, y: Array, *, theta: float, rho: float, m: float, key: bytes
) -> tuple[Array, Preserving]:
    """The released table x̄ (q, p) and its check.

    Never raises because the claim fails: ask ``preserved``.
    """
    mechanism, solution = preserving_noise(x, y, theta=theta, rho=rho, m=m)
    released = np.asarray(x, np.float64) + mechanism.sample(0, len(x), key)
    return released, check_preserved(released, y, mechanism, solution, theta=theta, rho=rho)


def check_preserved(
    released: Array, y: Array, mechanism: Correlated, solution: SvmSolution, *, theta: float, rho: float
) -> Preserving:
    """Solves (2) on ``released``, from nothing, and compares: what a file was read back as, for example."""
    again = solve_svm(released, y, theta=theta, rho=rho)
    return Preserving(mechanism, solution, solution.change(again))
