"""Errors over blind errors, and means over seeds with their 95 % intervals (Student's t)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple


def over_blind(error: float, blind: float) -> float:
    """``error`` over the blind guess's: 0 is exact, 1 no better than blind. Infinite if only ``blind`` is 0;
    nan if both are: there was nothing to find, and nothing is said of it.
    """
    if blind:
        return error / blind
    return math.inf if error else math.nan


def least_first(relative: float) -> float:
    """A key that sorts relative errors, an undefined one last."""
    return math.inf if math.isnan(relative) else relative


def half_width(stderr: float) -> float:
    """Half the width of the 95 % interval of a mean with this standard error."""
    return 1.96 * stderr


def ends_of(error: float, half: float) -> dict[str, float]:
    """The ends of the interval of an ``error``, ± ``half``."""
    return {"low": max(0.0, error - half), "high": error + half}


def finite_pair(error: float, blind: float) -> bool:
    """Whether both errors are known: AUC is nan on rows of one class."""
    return math.isfinite(error) and math.isfinite(blind)


class Pooled(NamedTuple):
    """A relative error over ``seeds`` seeds, ± ``half``; ``undefined`` more seeds had nothing to find, or no
    finite error.
    """

    mean: float
    half: float
    seeds: int
    undefined: int


def pooled(errors: Iterable[tuple[float, float]]) -> Pooled:
    """Σ error / Σ blind error of (error, blind error) seed by seed, without seeds where both are 0 or one is
    not finite.

    A mean of quotients would be infinite with one seed of blind error 0. The interval is that of the ratio
    estimator: of the residuals error − mean · blind (Cochran, Sampling Techniques, 1977, §2.11).
    """
    every = [*errors]
    found = [pair for pair in every if any(pair) and finite_pair(*pair)]
    blind = math.fsum(b for _, b in found)
    mean = over_blind(math.fsum(e for e, _ in found), blind)
    half = 0.0
    if len(found) > 1 and math.isfinite(mean):
        half = interval([(e - mean * b) * len(found) / blind for e, b in found])[1]
    return Pooled(mean, half, len(found), len(every) - len(found))


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Mean and 95 % half width over seeds; 0 for one seed, nan and 0 for none."""
    n = len(values)
    mean = math.fsum(values) / n if n else math.nan
    if n < 2:
        return mean, 0.0
    deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1))
    return mean, quantile(n) * deviation / math.sqrt(n)


@cache
def quantile(n: int) -> float:
    """The 97.5 % quantile of Student's t for the mean of ``n`` values."""
    from scipy.special import stdtrit  # scipy.stats has the same number, and takes a second to load

    return float(stdtrit(n - 1, 0.975))


def spread(values: Sequence[float], digits: int = 3) -> str:
    """Mean ± 95 % half width over seeds (Student's t); "–" of nothing."""
    if not values:
        return "–"
    mean, half = interval(values)
    return f"{mean:.{digits}f}" + (f" ± {half:.{digits}f}" if len(values) > 1 else "")
