"""Whole numbers within bounds, some of whose weighted sums are known: their bounds, by meeting in the middle.

The numbers are cut into two halves, and the sums of all choices of each half are listed, one list in order.
To a choice of the one half belong those of the other whose sum makes up what is due: a place in the ordered
list (Horowitz and Sahni, 1974, J. ACM 21(2)).
"""

from dataclasses import dataclass
from math import prod

import numpy as np

from vflens.array import Array

_MOST = 1 << 21  # choices of both halves, and pairs of choices whose first sum fits: a second


@dataclass(eq=False)
class Work:
    """How many choices may still be listed or paired; the first number bounds a search to a minute."""

    left: int = 1 << 27

    def allows(self, choices: int) -> bool:
        """Whether so many may be; they are then taken off."""
        if choices > min(_MOST, self.left):
            return False
        self.left -= choices
        return True


@dataclass(frozen=True, eq=False)
class WholeSums:
    """Of whole numbers n (k,) Σ ``weights[0]`` n is ``due[0]`` up to ``slack[0]``, and Σ ``weights[1]`` n
    exceeds ``due[1]``, up to ``slack[1]``, by a whole number from 0 to Σ n.
    """

    weights: Array
    due: Array
    slack: Array

    def ends(self, least: Array, most: Array, work: Work) -> Array | None:
        """The least and largest of each n int (2, k) among all choices from ``least`` to ``most`` int (k,).

        The least exceed the largest where no choice fits; None if ``work`` does not allow to find them.
        """
        sizes = most - least + 1
        halves = _halves(sizes)
        if not work.allows(sum(prod(sizes[half].tolist()) for half in halves)):
            return None
        weights = np.vstack([self.weights, np.ones(len(least))])
        one, other = (_sums(weights[:, half], least[half], most[half]) for half in halves)
        order = other[0].argsort(kind="stable")
        due, ordered = self.due[0] - one[0], other[0, order]
        begin = np.searchsorted(ordered, due - self.slack[0], "left")
        end = np.searchsorted(ordered, due + self.slack[0], "right")
        if not work.allows(int((end - begin).sum())):
            return None
        i = np.repeat(np.arange(len(begin)), end - begin)
        j = order[np.arange(len(i)) - np.repeat((end - begin).cumsum() - end, end - begin)]
        fits = self._whole(one[1, i] + other[1, j], one[2, i] + other[2, j])
        if not fits.any():
            return np.stack([least + 1, least])
        found = np.stack([least, least])
        for half, chosen in zip(halves, (i[fits], j[fits]), strict=True):
            free = half[sizes[half] > 1]  # 21 at most: an array has 64 dimensions
            digits = np.array(np.unravel_index(chosen, (1, *sizes[free])))[1:]
            found[:, free] += np.stack([digits.min(axis=1), digits.max(axis=1)])
        return found

    def _whole(self, second: Array, total: Array) -> Array:
        """Whether these sums (s,) of choices with Σ n ``total`` exceed what is due by such a number."""
        over = second - self.due[1]
        whole = over.round()
        found: Array = (np.abs(over - whole) <= self.slack[1]) & (whole >= 0) & (whole <= total)
        return found


def _halves(sizes: Array) -> tuple[Array, Array]:
    """The places of ``sizes`` in two parts with products that are nearly equal."""
    parts: tuple[list[int], list[int]] = ([], [])
    products = [1.0, 1.0]
    for place in (-sizes).argsort(kind="stable").tolist():
        smaller = int(products[1] < products[0])
        parts[smaller].append(place)
        products[smaller] *= float(sizes[place])
    return np.array(parts[0], int), np.array(parts[1], int)


def _sums(weights: Array, least: Array, most: Array) -> Array:
    """Sums (r, s) of all choices with ``weights`` (r, k), the last number changes first."""
    sums = np.zeros((len(weights), 1))
    for weight, low, high in zip(weights.T, least, most, strict=True):
        added = weight[:, None] * np.arange(low, high + 1)
        sums = (sums[:, :, None] + added[:, None]).reshape(len(weights), -1)
    return sums
