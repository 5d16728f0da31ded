"""One unknown feature behind an unknown affine map, v = ωX + b₀ (RVG §VI).

The adversary's knowledge of the signs decides:

===============  ==================================================================================
signs            reconstruction, v_m and v_M the least and greatest v
===============  ==================================================================================
zero_bias        case 1, b₀ = 0: v / (v of largest |v|)
same             case 2, ωb₀ > 0: 1 at the largest |v|, 0 at the smallest |v|, linear between
opposite         case 3, ωb₀ < 0: all v share a sign → 0 at the largest |v|, 1 at the smallest;
                 v of both signs → either orientation fits: ambiguous
unknown          ambiguous
===============  ==================================================================================

An ambiguous case (X̂ or 1 − X̂) gives ½, unless the population mean is known: then the answer is the
orientation with the nearer mean (footnote 15). Fewer than two different v give ½ as well, except for case 1,
where a constant v ≠ 0 gives 1.

**Convergence.** X̂ → X as N grows only if X comes arbitrarily near to 0 *and* 1 (case 1: to 1). Lemma 2 omits
this: for X uniform on [.4, .6] the error stays at .053. With X̂ from case 2 the error is at most (X_max − 1)²
+ X_min². Case 3's inference from a common sign needs mass near 0 too.
"""

from typing import Literal, TypeAlias

import numpy as np

from vflens.array import Array

Signs: TypeAlias = Literal["zero_bias", "same", "opposite", "unknown"]


def reconstruct(v: Array, signs: Signs, mean: float | None = None) -> tuple[Array, bool]:
    """X̂ (N,) in [0, 1] from ``v`` (N,), finite, and whether it is an undecided ½.

    Args:
        v: observations.
        signs: knowledge of the signs of ω and b₀.
        mean: the population mean of X, if known.
    """
    unit = _unit(v)
    if signs == "zero_bias":
        largest = v[np.argmax(np.abs(v))] if len(v) else 0.0
        return (np.clip(v / largest, 0.0, 1.0), False) if largest else _nothing(v)
    if unit is None:
        return _nothing(v)
    away = unit if abs(v.max()) >= abs(v.min()) else 1 - unit  # grows with |v|
    if signs == "same":
        return away, False
    if signs == "opposite" and v.min() * v.max() >= 0:
        return 1 - away, False
    return _oriented(unit, mean)


def contradicts(v: Array, signs: Signs) -> bool:
    """Whether no X in [0, 1] and no ω, b₀ of these signs give ``v``: case 1 or 2 with v of both signs."""
    return signs in ("zero_bias", "same") and len(v) > 0 and bool(v.min() * v.max() < 0)


def _unit(v: Array) -> Array | None:
    """(v − v_m)/(v_M − v_m), None where all v are equal."""
    if len(v) < 2 or np.ptp(v) <= 1e-12 * np.abs(v).max():
        return None
    unit: Array = (v - v.min()) / np.ptp(v)
    return unit


def _oriented(unit: Array, mean: float | None) -> tuple[Array, bool]:
    """The orientation whose mean is nearer to ``mean``; ½ if both are equally near."""
    up = unit.mean()
    if mean is None or abs(up - mean) == abs(1 - up - mean):
        return _nothing(unit)
    return (unit if abs(up - mean) < abs(1 - up - mean) else 1 - unit), False


def _nothing(v: Array) -> tuple[Array, bool]:
    return np.full(len(v), 0.5), True
