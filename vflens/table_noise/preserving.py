"""A release that keeps the SVM classifier (FAR Thm 2.10), checked by solving the released table again."""

from dataclasses import dataclass

import numpy as np

from vflens.table_noise.correlated import Correlated
from vflens.table_noise.svm import SvmSolution, solve_svm
from vflens.types import Array

#: Relative precision of α, β and ξ to which the released table must give the classifier again.
PRESERVED = 1e-6


@dataclass(frozen=True, eq=False)
class Preserving:
    """A release and its check: ``preserved`` is the claim, ``change`` the measured difference.

    The receiver gets the same classifier only with the same θ, ρ and labels, all rows, and all digits of the
    file (17, or binary float64): without scaling, splitting or rounding.
    """

    mechanism: Correlated
    solution: SvmSolution
    change: float

    @property
    def preserved(self) -> bool:
        """Whether the release is classifier-preserving: ω is exact, and solving again gave the same
        classifier.
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

    A failed claim does not raise: see ``preserved``.
    """
    mechanism, solution = preserving_noise(x, y, theta=theta, rho=rho, m=m)
    released = np.asarray(x, np.float64) + mechanism.sample(0, len(x), key)
    return released, check_preserved(released, y, mechanism, solution, theta=theta, rho=rho)


def check_preserved(
    released: Array, y: Array, mechanism: Correlated, solution: SvmSolution, *, theta: float, rho: float
) -> Preserving:
    """Solve (2) on ``released`` from scratch and compare; ``released`` may come from a file."""
    again = solve_svm(released, y, theta=theta, rho=rho)
    return Preserving(mechanism, solution, solution.change(again))
