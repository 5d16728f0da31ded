"""How much more often an attack is right than the best blind guess, with an interval."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple, TypeAlias

Interval: TypeAlias = Callable[[float, int], tuple[float, float]]

_Z = 1.959963984540054  # the 97.5 % quantile of the standard normal law


class Advantage(NamedTuple):
    """(attack − control)/(1 − control) and its 95 % interval; 1: always right, 0: no better, nan: the control
    is always right, and nothing is left to find.
    """

    value: float
    low: float
    high: float


def wilson(share: float, n: int) -> tuple[float, float]:
    """The 95 % score interval of a share of ``n`` ≥ 1 rows: E. B. Wilson, Probable inference, the law of
    succession, and statistical inference, JASA 22 (1927).
    """
    center = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * math.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    return max(0.0, min(share, center - half)), min(1.0, max(share, center + half))  # rounding aside


def exact(share: float, n: int, tries: int = 1) -> tuple[float, float]:
    """Ends that lie beyond the true share with at most .025/``tries`` each, whatever it is, from a ``share``
    of ``n`` ≥ 1 rows: Clopper and Pearson, Biometrika 26 (1934).

    Of ``tries`` lower ends all hold with at least 97.5 % (Bonferroni). Wilson's do not: of small shares they
    are wrong several times as often, once ``tries`` move them far out.
    """
    from scipy.special import betaincinv  # loads slowly, and few commands decide

    found, tail = share * n, 0.025 / tries
    low = float(betaincinv(found, n - found + 1, tail)) if found > 0 else 0.0
    high = float(betaincinv(found + 1, n - found, 1 - tail)) if found < n else 1.0
    return low, high


def normal_quantile(tries: int = 1) -> float:
    """The 1 − .025/``tries`` quantile of the standard normal law."""
    return NormalDist().inv_cdf(1 - 0.025 / tries)


def advantage(attack: float, control: float, n: int, interval: Interval = wilson) -> Advantage:
    """From the shares of ``n`` rows in which an attack and its control are right, as attribute inference is
    measured by Giomi et al., A unified framework for quantifying privacy risk, PoPETs 2023.

    The ends add the squares of what each share's ``interval`` moves (R. G. Newcombe, Statistics in
    Medicine 17 (1998), method 10). Both shares are of the same rows: where they agree it is too wide.
    """
    if control >= 1:
        return Advantage(math.nan, math.nan, math.nan)
    value = _over(attack, control)
    (a_low, a_high), (c_low, c_high) = interval(attack, n), interval(control, n)
    below = math.hypot(value - _over(a_low, control), value - _over(attack, min(c_high, 1 - 1e-12)))
    above = math.hypot(_over(a_high, control) - value, _over(attack, c_low) - value)
    return Advantage(value, value - below, min(1.0, value + above))


def _over(attack: float, control: float) -> float:
    return (attack - control) / (1 - control)
