"""Decision trees as arrays: where rows end, and the box of values that leads to each leaf."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vflens.array import Array


@dataclass(frozen=True, eq=False)
class Tree:
    """A binary tree of n nodes, the root first; a row goes left at a node where its ``feature`` is below
    ``threshold``.

    ``feature`` int (n,) is −1 at leaves; ``left`` and ``right`` int (n,) name the children; ``value`` float64
    (n,) is what a leaf adds to the score; ``cover`` float64 (n,) weighs the training rows at each node. Every
    node but the root is the child of one node. ``weight`` float64 (n,) is what an inner node would add as a
    leaf, before it is shrunk; None if it is not known.
    """

    feature: Array
    threshold: Array
    left: Array
    right: Array
    value: Array
    cover: Array
    weight: Array | None = None

    @cached_property
    def leaves(self) -> Array:
        """The nodes (L,) that are leaves."""
        found: Array = np.flatnonzero(self.feature < 0)
        return found

    @cached_property
    def goes_left(self) -> tuple[Array, Array]:
        """Whether the path to each leaf passes each node, and whether it goes left there: bool (L, n)."""
        passes, left = np.zeros((2, len(self.feature), len(self.feature)), bool)
        for node, child, is_left in self._edges():
            passes[child], left[child] = passes[node], left[node]
            passes[child, node], left[child, node] = True, is_left
        return passes[self.leaves], left[self.leaves]

    def sends_left(self, x: Array) -> Array:
        """Whether each row of ``x`` (N, D) goes left at each node, bool (N, n); False at leaves."""
        below: Array = x[:, self.feature] < self.threshold
        return below & (self.feature >= 0)

    def reached(self, sends_left: Array) -> Array:
        """The place in ``leaves`` (N,) where rows with these directions (N, n) end."""
        node, rows = np.zeros(len(sends_left), int), np.arange(len(sends_left))
        while (inner := self.feature[node] >= 0).any():
            child = np.where(sends_left[rows, node], self.left[node], self.right[node])
            node = np.where(inner, child, node)
        return np.searchsorted(self.leaves, node)

    def boxes(self, columns: Array) -> tuple[Array, Array]:
        """For each leaf the least value and the first too large one of these features (d,): (L, d) each."""
        place = {int(feature): j for j, feature in enumerate(columns)}
        shape = (len(self.feature), len(columns))
        low, high = np.full(shape, -np.inf), np.full(shape, np.inf)
        for node, child, is_left in self._edges():
            low[child], high[child] = low[node], high[node]
            j = place.get(int(self.feature[node]))
            if j is not None and is_left:
                high[child, j] = min(high[child, j], self.threshold[node])
            elif j is not None:
                low[child, j] = max(low[child, j], self.threshold[node])
        return low[self.leaves], high[self.leaves]

    def _edges(self) -> Iterator[tuple[int, int, bool]]:
        """Node, child and whether it is the left one; every node comes as a child before it is a parent."""
        waiting = [0]
        while waiting:
            node = waiting.pop()
            if self.feature[node] >= 0:
                for child, is_left in ((self.left[node], True), (self.right[node], False)):
                    yield node, int(child), is_left
                    waiting.append(int(child))
