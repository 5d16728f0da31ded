"""The sigmoid as a sine series, whose value at z = c − r needs one product with what depends on r alone.

σ(z) ≈ ½ + Σ_{j≤12} b_j sin(πjz/16), and sin(πj(c − r)/16) = sin(πjc/16) cos(πjr/16) − cos(πjc/16)
sin(πjr/16). The coefficients are those of the smallest largest error on |z| ≤ 12, which is 1.2·10⁻⁴; the
series stays within .5002 of ½ for every z, and has the period 32: beyond |z| = 12 it falls, and at 16 it
wraps.
"""

from functools import cache

import numpy as np

from vflens.array import Array

#: Fraction bits of logits, of a sine or cosine, and of a residual, which is a product of two of them.
LOGIT_BITS, WAVE_BITS, RESIDUAL_BITS = 36, 14, 28
#: The series is the sigmoid for logits up to it.
LARGEST_LOGIT = 12.0
#: No value of the series, rounded as here, less a label in [0, 1] lies beyond.
LARGEST_RESIDUAL = 1.01
_UNITS = [
    60089758,
    -315952,
    12687258,
    392878,
    2840981,
    954503,
    91735,
    811314,
    -292335,
    380571,
    -117021,
    91186,
]
COEFFICIENTS = np.array(_UNITS) * 1e-8
HARMONICS = len(COEFFICIENTS)

_TURN_BITS = 20  # a period of 2⁴¹ units of a logit in 2²⁰ places
_NUMBERS = np.arange(1, HARMONICS + 1)


@cache
def _sines() -> Array:
    """2¹⁴ sin(2πi/2²⁰), rounded, int16.

    None lies within 3·10⁻⁷ of a tie, so that every machine rounds to the same: parties need the same bits.
    """
    turns = np.arange(1 << _TURN_BITS) / (1 << _TURN_BITS)
    sines: Array = np.rint(np.sin(2 * np.pi * turns) * (1 << WAVE_BITS)).astype(np.int16)
    return sines


def waves(logits: Array) -> Array:
    """sin(πjz/16) and cos(πjz/16), j ≤ 12, of ``logits`` uint64 (n, k) with 36 fraction bits: int64
    (2, 12, n, k) with 14 of them.

    Logits are cut to 15 fraction bits. That of c − r is right in the mean over r, and by at most 2⁻¹⁵.
    """
    places = (logits >> np.uint64(LOGIT_BITS + 5 - _TURN_BITS)).astype(np.int64)
    angles = _NUMBERS[:, None, None] * places
    quarter, last = 1 << (_TURN_BITS - 2), (1 << _TURN_BITS) - 1
    return np.stack([_sines()[angles & last], _sines()[(angles + quarter) & last]]).astype(np.int64)


def series(opened: Array, of_mask: Array) -> Array:
    """The series, less ½, at c − r: uint64 (n, k) with 28 fraction bits, linear in ``of_mask``.

    Args:
        opened: c, uint64 (n, k).
        of_mask: :func:`waves` of r as uint64 (2, 12, n, k), or a share of it.
    """
    scaled = np.rint(COEFFICIENTS[:, None, None] * waves(opened)).astype(np.int64).view(np.uint64)
    total: Array = (scaled[0] * of_mask[1] - scaled[1] * of_mask[0]).sum(axis=0)
    return total
