"""Fewer fraction bits for a shared number, exact to one unit, with a pair that a dealer gives (r ≫ s, msb r).

o = x + 2⁶² + r is opened; r is uniform, and so is o. As 0 ≤ x + 2⁶² < 2⁶³, the sum wraps if and only if
msb r = 1 and msb o = 0, and ⌊o/2ˢ⌋ − ⌊r/2ˢ⌋ is (x + 2⁶²)/2ˢ rounded down or up, right in the mean over r.
"""

import numpy as np

from vflens.array import Array

#: |x| must be smaller.
LIMIT = 1 << 62
OFFSET = np.uint64(LIMIT)
_ONE, _TOP = np.uint64(1), np.uint64(63)


def pair(mask: Array, shift: int) -> tuple[Array, Array]:
    """⌊r/2ˢ⌋ and the highest bit of each r of ``mask`` uint64."""
    return mask >> np.uint64(shift), mask >> _TOP


def truncated(opened: Array, high: Array, top: Array, shift: int, *, first: bool = True) -> Array:
    """A share of x/2ˢ, uint64 like ``opened``; from the pair itself, x/2ˢ.

    Args:
        opened: o = x + 2⁶² + r.
        high: ⌊r/2ˢ⌋, or a share of it.
        top: msb r, or a share of it.
        shift: s, 2 to 62.
        first: whether this is the share that takes up what is public.
    """
    wraps = (_ONE - (opened >> _TOP)) << np.uint64(64 - shift)
    public = (opened >> np.uint64(shift)) - (OFFSET >> np.uint64(shift)) if first else np.uint64(0)
    result: Array = public - high + wraps * top
    return result
