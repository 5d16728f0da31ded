"""The classifier of a release, solved again from its definition."""

from vflens.table_noise.svm import SvmPoint
from vflens.types import Array
from vflens.verification import programs


def difference(found: SvmPoint, x: Array, y: Array, *, theta: float, rho: float) -> float:
    """How far ``found`` is from CVXPY's solution of FAR (2) for rows ``x`` (q, p) and labels ±1 ``y`` (q,).

    Relative, the largest over α, β and ξ: see :meth:`vflens.table_noise.svm.SvmPoint.change`.
    """
    return found.change(SvmPoint(*programs.svm(x, y, theta=theta, rho=rho)))
