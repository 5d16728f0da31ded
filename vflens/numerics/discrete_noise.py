"""Laplace and Gaussian noise on a grid, drawn with integers, so that an ε can be stated.

The last bits of a double x + n show which x it can come from (Mironov 2012, "On significance of the least
significant bits for differential privacy"), for every law of n. Here x is first rounded to K whole steps of a
grid. The release is a function of the whole number K + ⌊Z⌋, with Z of the continuous law. As K + ⌊Z⌋ = ⌊K +
Z⌋, it is a function of what the textbook's mechanism releases for K. So that mechanism's (ε, δ) holds, in any
number of coordinates, for the sensitivity of K. Multiplying by the step, adding half a step and casting to
float32 are further functions of it.

The sampler compares uniform words of 64 bits with integer thresholds, equal on every processor.
:func:`laplace` has each probability right to a relative 2⁻⁵¹ and no largest value, so that δ stays 0;
:func:`gaussian` differs from its law by :data:`GAUSSIAN_ERROR` in total variation, which adds to δ.
Both assume uniform words; that is not proved of Philox under a secret key.
"""

import math
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from functools import cache
from itertools import accumulate
from typing import TypeAlias

import numpy as np

from vflens.array import Array

#: A source of uniform uint64 words: new ones at every call, one for each number drawn.
Words: TypeAlias = Callable[[], Array]

#: Steps of the grid in a standard deviation of the Gaussian, and in the distance over which Laplace's density
#: halves.
STEPS = 4096
#: A step in units of the Gaussian's standard deviation, and of Laplace's scale b.
GAUSSIAN_STEP, LAPLACE_STEP = 1 / STEPS, math.log(2) / STEPS
#: Deviations that the Gaussian reaches: 2⁻⁷² of its mass lies beyond.
REACH = 9.75
#: Largest total variation between a number of :func:`gaussian` and its law. A threshold is at most 2⁻⁶⁴ wrong
#: and each of 39,936 cells twice that: half their sum is 2^-48.7.
GAUSSIAN_ERROR = 2.0**-48
#: Largest relative excess of an ε under :func:`laplace`. A threshold is at most 2⁻⁶⁵ wrong, so a cell of at
#: least 2^-12.6 is wrong by 2^-51.4 of itself. A coordinate in which K differs adds twice that to its ε of at
#: least ln 2/4096 = 2^-12.5.
LAPLACE_ERROR = 2.0**-37

#: The share of δ for the error of :func:`gaussian`.
_FOR_SAMPLER = 0.01

_TOSSES = 63
_MANY = 1000  # from so many words on, leading bits save time
_POWERS = np.uint64(1) << np.arange(_TOSSES, dtype=np.uint64)
_REST = np.uint64(2**63 - 1)


def ideal(delta: float) -> float:
    """δ without the Gaussian sampler's share: the δ of exact Gaussian noise."""
    return delta * (1 - _FOR_SAMPLER)


def largest_epsilon(delta: float, numbers: int) -> float:
    """Largest ε at which :func:`gaussian`'s error in ``numbers`` draws, (1 + e^ε) each, stays in its share of
    δ; or 0.
    """
    return math.log(max(1.0, _FOR_SAMPLER * delta / (numbers * GAUSSIAN_ERROR) - 1))


def prepare_gaussian() -> None:
    """Build the table of :func:`gaussian`, once a process: it takes longer than a training step."""
    _half_normal()


def fresh_words(rng: np.random.Generator, *shape: int) -> Words:
    """Words of ``rng``, ``shape`` of them at a call."""
    raw, count = rng.bit_generator.random_raw, math.prod(shape)
    return lambda: raw(count).reshape(shape)


def laplace(words: Words) -> Array:
    """⌊Z⌋ + ½ in steps (float64), Z of density ∝ 2^(−|z|/4096): the two-sided geometric law of Ghosh et al.
    (2009) about −½.

    ⌊|Z|⌋ = 4096 v + u, independent: v tails of a fair coin before its first head, u in 0…4095 by table.
    """
    u = _within_a_halving().of(words())
    flips, v = _flips_and_tails(words)
    return ((STEPS * v + u) ^ flips) + 0.5


def gaussian(words: Words) -> Array:
    """⌊Z⌋ + ½ in steps (float64), Z ~ N(0, 4096²): an increasing function of one word."""
    word = words()
    flips = _flips(word)
    size = _half_normal().of((word ^ flips.view(np.uint64)) & _REST)
    return (size ^ flips) + 0.5


def _flips(word: Array) -> Array:
    """0 or −1 by the highest bit: for x = ⌊Z⌋, x ^ −1 is ⌊−Z⌋ = −x − 1."""
    return (word >> np.uint64(63)).view(np.int64) - 1


def _flips_and_tails(words: Words) -> tuple[Array, Array]:
    """A sign, and the number of tails before the first head; draws as many words as needed."""
    word = words()
    flips, tails = _flips(word), _tails(word)
    undecided = tails == _TOSSES
    while undecided.any():
        more = _tails(words())
        tails[undecided] += more[undecided]
        undecided &= more == _TOSSES
    return flips, tails


def _tails(word: Array) -> Array:
    """Number of 0 bits before the first 1 below the highest bit; :data:`_TOSSES` without a 1."""
    tails: Array = _TOSSES - np.searchsorted(_POWERS, word & _REST, side="right")
    return tails


class _Cells:
    """The cells of a law as shares of 2^bits: a uniform word w of so many bits is in cell #{thresholds ≤ w}.

    Its leading 16 bits nearly determine the cell; a search does the rest (Chen and Asau 1974).
    """

    def __init__(self, masses: Sequence[Decimal], bits: int) -> None:
        scale = 2**bits / sum(masses, Decimal(0))
        found = [int((below * scale).to_integral_value()) for below in accumulate(masses[:-1])]
        self.thresholds = np.array(found, np.uint64)
        self._shift = np.uint64(bits - 16)
        first = np.arange(2**16, dtype=np.uint64) << self._shift
        self._first = np.append(np.searchsorted(self.thresholds, first, side="right"), len(found))

    def of(self, words: Array) -> Array:
        """The cells (int64) of ``words``."""
        if words.size < _MANY:
            return np.searchsorted(self.thresholds, words, side="right")
        lead = (words >> self._shift).view(np.int64)
        cell: Array = self._first[lead]
        several = cell != self._first[lead + 1]
        cell[several] = np.searchsorted(self.thresholds, words[several], side="right")
        return cell


@cache
def _within_a_halving() -> _Cells:
    """The cells of u: P(u) ∝ 2^(−u/4096)."""
    with localcontext(prec=40):
        fall = Decimal(2) ** (Decimal(-1) / STEPS)
        return _Cells([fall**u for u in range(STEPS)], 64)


@cache
def _half_normal() -> _Cells:
    """The cells of ⌊|Z|⌋: P(n) ∝ ∫ exp(−z²/2) dz from nh to (n + 1)h, h = 1/4096.

    With m the middle it is e^(−m²/2)·(1 + h²(m² − 1)/24 + h⁴(m⁴ − 6m² + 3)/1920), short of a relative 2⁻⁷⁰ by
    Taylor's series. The exponential goes from cell to cell by e^(−(n+1)h²).
    """
    with localcontext(prec=40):
        h2 = Decimal(1) / STEPS**2
        square, slope, constant = h2 * h2 / 1920, h2 / 24 - h2 * h2 / 320, 1 - h2 / 24 + h2 * h2 / 640
        quarter, fall, masses = h2 / 4, (-h2).exp(), []
        density, ratio = (-h2 / 8).exp(), fall
        for n in range(round(REACH * STEPS)):
            m2 = quarter * (2 * n + 1) ** 2
            masses.append(density * (m2 * (m2 * square + slope) + constant))
            density, ratio = density * ratio, ratio * fall
        return _Cells(masses, 63)
