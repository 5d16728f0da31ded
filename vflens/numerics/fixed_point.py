"""Real numbers as integers modulo 2⁶⁴, whose sums are exact in any order."""

import numpy as np

from vflens.array import Array


def encoded(values: Array, fraction_bits: int, terms: int) -> Array:
    """Each number as its nearest multiple of 2^−``fraction_bits``, in two's complement: uint64.

    The sum of ``terms`` such arrays does not overflow, and is within ``terms``·2^−(fraction_bits + 1) of the
    sum of the real numbers.

    Args:
        values: float64 (n,).
        fraction_bits: 0 to 52.
        terms: how many arrays are summed.

    Raises:
        ValueError: a number is not finite, or so large that the sum could overflow.
    """
    steps = np.rint(values * 2.0**fraction_bits)
    most = 2.0**63 / terms
    if not (np.abs(steps) < most).all():  # NaN is not below it either
        raise ValueError(
            f"a number beyond {most / 2.0**fraction_bits:g}, or not finite, in a sum of {terms} terms with "
            f"{fraction_bits} fraction bits: clip the values, or take fewer bits"
        )
    whole: Array = steps.astype(np.int64).view(np.uint64)
    return whole


def decoded(total: Array, fraction_bits: int) -> Array:
    """The numbers float64 (n,) of a sum modulo 2⁶⁴ of :func:`encoded` arrays; sums beyond 2⁵³ steps are
    rounded to float64.
    """
    values: Array = total.view(np.int64) * 2.0**-fraction_bits
    return values
