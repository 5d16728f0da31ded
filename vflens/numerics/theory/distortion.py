"""The weights of given distortion that mislead the adversary most (VAR §V, cases iii and iv).

The distortion of weights Wₙ, disclosed instead of W (k, d), is g = ‖W − Wₙ‖²_F/(dk). In both cases the
adversary's matrix is one direction, Aₙ = J Wₙ. A shift common to all classes moves Wₙ but not Aₙ. It absorbs
the rest of ε, so that g = ε exactly and Aₙ may lie anywhere in a ball. The programs are solved directly, not
through VAR (57)–(59), which drop terms and invert the singular JᵀJ.
"""

import numpy as np

from vflens.array import Array
from vflens.numerics.estimators.ball_program import largest_ratio
from vflens.numerics.linear_system import first_differences, row_basis
from vflens.numerics.theory.distortion_theory import single_feature_mse


def largest_distortion(W: Array) -> float:
    """The end of the admissible range (0, end) of ε for W (k, d); no solution lies beyond it.

    * d = 1: ‖w − w̄1‖²/k, where Aₙ could reach 0 and the error grows without bound;
    * k = 2: ‖A‖²/(4d), for the same reason;
    * otherwise 4‖W‖²_F/(dk), the distance of Wₙ = −W; this end itself is admissible.
    """
    k, d = W.shape
    if d == 1:
        return float(np.sum((W - W.mean()) ** 2) / k)
    if k == 2:
        return float(np.sum((W[1] - W[0]) ** 2) / (4 * d))
    return largest_rotation(W)


def largest_rotation(W: Array) -> float:
    """The largest ε that a rotation Wₙ = W R reaches, by R = −I: 4‖W‖²_F/(dk)."""
    return float(4 * np.sum(W**2) / W.size)


def distorted_feature(w: Array, square_mean: float, epsilon: float) -> Array:
    """wₙ (k,) at distortion ε that maximises E[x²](1 − AₙᵀA/(AₙᵀAₙ))², one feature, k ≥ 2 (VAR §V iii).

    The ratio AₙᵀA/AₙᵀAₙ is the largest or the smallest in the ball: the one that misleads more. For k = 2
    this is w ± √ε(1, −1).

    Args:
        w: (k,) true weights.
        square_mean: E x².
        epsilon: 0 < ε < ‖w − w̄1‖²/k.
    """
    k = len(w)
    J = first_differences(k)
    V = row_basis(J)  # (k, k − 1), orthogonal to the shifts
    G, center = V.T @ J.T @ J @ V, V.T @ w
    ends = [
        largest_ratio(
            np.zeros_like(G), sign * 0.5 * G @ center, 0.0, G, center=center, radius=np.sqrt(k * epsilon)
        )
        for sign in (1.0, -1.0)
    ]
    x = max(ends, key=lambda x: single_feature_mse(square_mean, J @ w, J @ V @ x))
    moved = x - center
    return np.asarray(w + V @ moved + _share(k * epsilon - moved @ moved, k))


def distorted_two_classes(W: Array, K0: Array, mean: Array, epsilon: float) -> Array:
    """Wₙ (2, d) at distortion ε that maximises the MSE of half*, d > 1 (VAR (53), case iv).

    ‖Aₙ − A‖ ≤ 2√(dε) is equivalent to g ≤ ε.

    Args:
        W: (2, d) true weights.
        K0: second moment of x around 0 (d, d).
        mean: μ (d,).
        epsilon: 0 < ε < ‖A‖²/(4d).
    """
    d = W.shape[1]
    a = W[1] - W[0]
    M = np.outer(np.ones(d), mean - 0.25)
    x = largest_ratio(
        0.5 * (M + M.T), -K0 @ a, float(a @ K0 @ a), np.eye(d), center=a, radius=2 * np.sqrt(d * epsilon)
    )
    moved = x - a
    shift = _share(d * epsilon - moved @ moved / 4, d)
    return np.stack([W[0] - moved / 2 + shift, W[1] + moved / 2 + shift])


def _share(square: float, size: int) -> float:
    """The entry of a constant vector with ``size`` entries and squared length ``square``; rounding below 0
    gives 0.
    """
    return float(np.sqrt(max(square, 0.0) / size))
