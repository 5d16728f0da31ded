"""Vertical boosting in the manner of SecureBoost, in one process: what the parties see of each other."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from vflens.types import Array

ETA, LAMBDA = 0.3, 1.0


@dataclass(eq=False)
class Training:
    """Trees on ``bins`` int (n, D) and ``y`` (n,); the first ``passive`` columns are the passive party's.

    ``nodes`` holds (tree, rows, histograms of gradients and of hessians (D, B)) of each node whose split was
    sought; ``own`` (tree, rows) of the children of the passive party's splits; ``gradient`` and ``hessian``
    of each tree (n,).
    """

    bins: Array
    y: Array
    passive: int
    most: int
    score: Array = field(init=False)
    nodes: list[tuple[int, Array, Array, Array]] = field(default_factory=list)
    own: list[tuple[int, Array]] = field(default_factory=list)
    gradient: list[Array] = field(default_factory=list)
    hessian: list[Array] = field(default_factory=list)

    def grow(self, trees: int, depth: int) -> Training:
        self.score = np.zeros(len(self.y))
        for _ in range(trees):
            p = 1 / (1 + np.exp(-self.score))
            self.gradient.append(p - self.y)
            self.hessian.append(p * (1 - p))
            self._split(np.ones(len(self.y), bool), depth)
        return self

    def _split(self, rows: Array, depth: int) -> None:
        g, h = self.gradient[-1], self.hessian[-1]
        G, H = g[rows].sum(), h[rows].sum()
        if not depth:
            self.score[rows] -= ETA * G / (H + LAMBDA)
            return
        columns = self.bins[rows].T
        sums, below = (np.array([np.bincount(c, of[rows], self.most) for c in columns]) for of in (g, h))
        tree = len(self.gradient) - 1
        self.nodes.append((tree, rows, sums, below))
        left, below = (s.cumsum(axis=1)[:, :-1] for s in (sums, below))
        gain = left**2 / (below + LAMBDA) + (G - left) ** 2 / (H - below + LAMBDA) - G**2 / (H + LAMBDA)
        gain[(below < 1e-3) | (H - below < 1e-3)] = -np.inf
        column, last = np.unravel_index(gain.argmax(), gain.shape)
        if gain.max() <= 1e-9:
            self._split(rows, 0)
            return
        goes_left = self.bins[:, column] <= last
        for child in (rows & goes_left, rows & ~goes_left):
            if column < self.passive:
                self.own.append((tree, child))
            self._split(child, depth - 1)

    def seen_by_passive(self) -> dict[str, Array]:
        """The instance spaces of nodes that it sums for, and of its own splits' children."""
        seen = [(tree, rows) for tree, rows, *_ in self.nodes] + self.own
        return {"spaces": np.array([rows for _, rows in seen]), "tree": np.array([tree for tree, _ in seen])}

    def seen_by_active(self) -> dict[str, Array]:
        """Its own gradients, the rows of each node, and the sums that the passive party answers with."""
        tree, rows, g, h = (np.array(part) for part in zip(*self.nodes, strict=True))
        mine = slice(self.passive)
        return {
            **{"spaces": rows, "tree": tree, "gradient": np.array(self.gradient)},
            **{"hessian": np.array(self.hessian), "gradient_sums": g[:, mine], "hessian_sums": h[:, mine]},
        }


def trained(seed: int, n: int, trees: int, *, bins: int = 16, depth: int = 3) -> Training:
    """A training on ``n`` rows of breast_cancer; the passive party has 15 of its columns."""
    from sklearn.datasets import load_breast_cancer

    x, y = load_breast_cancer(return_X_y=True)
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(len(y))[:n], rng.permutation(x.shape[1])
    ranks = x[np.ix_(rows, columns)].argsort(axis=0, kind="stable").argsort(axis=0, kind="stable")
    return Training(ranks * bins // n, y[rows], 15, bins).grow(trees, depth)
