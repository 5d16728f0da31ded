"""ε, δ and sensitivity of Gaussian noise, exactly: one release or T of them.

Two neighbours lie a deviations of the noise apart. Their ε solves Φ(a/2 − ε/a) − e^ε Φ(−a/2 − ε/a) = δ
(Balle and Wang 2018, Thm 8). T releases, each chosen after the ones before it, are one of √T·a: they compose
as Gaussian differential privacy does (Dong, Roth and Su 2022, Cor. 3.3). dp-accounting has the same, but pins
attrs < 24 and dm-tree and conflicts with this project's dependencies.
"""

import numpy as np


def gaussian_delta(a: float, epsilon: float) -> float:
    """δ of Gaussian noise at ``epsilon``: Φ(a/2 − ε/a) − e^ε Φ(−a/2 − ε/a), without cancellation."""
    from scipy.special import log_ndtr  # no party loads SciPy before it states an ε

    first, second = log_ndtr(a / 2 - epsilon / a), epsilon + log_ndtr(-a / 2 - epsilon / a)
    return float(np.exp(first) * -np.expm1(min(second - first, 0.0)))


def gaussian_epsilon(a: float, delta: float) -> float:
    """The least ε ≥ 0 with gaussian_delta(a, ε) ≤ δ."""
    if a == 0 or gaussian_delta(a, 0.0) <= delta:
        return 0.0
    from scipy.optimize import brentq

    above = a * a / 2 + a * np.sqrt(-2 * np.log(delta))  # P(loss > ε) ≤ δ there: loss ~ N(a²/2, a²)
    return float(
        brentq(lambda e: gaussian_delta(a, e) - delta, 0.0, above, xtol=1e-14, rtol=1e-13, maxiter=2000)
    )


def gaussian_sensitivity(epsilon: float, delta: float) -> float:
    """The largest a whose exact ε at ``delta`` is ``epsilon`` > 0: inverts :func:`gaussian_epsilon`."""
    from scipy.optimize import brentq

    low, high = 1e-12 * min(1.0, epsilon), 1.0
    while gaussian_delta(high, epsilon) < delta:
        high *= 2
    return float(
        brentq(lambda a: gaussian_delta(a, epsilon) - delta, low, high, xtol=1e-300, rtol=1e-13, maxiter=2000)
    )
