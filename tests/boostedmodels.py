"""Trees as XGBoost grows and saves them: exact greedy splits, numbers in single precision."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from vflens.numerics.boosting.trees import Tree
from vflens.types import Array

ETA, LAMBDA = 0.3, 1.0
RECORDED = Path(__file__).parents[1] / "examples/recorded/xgboost"


def saved(x: Array, y: Array, depths: Sequence[int], least_cover: float = 1.0) -> tuple[list[Tree], float]:
    """Trees of logistic loss of these depths on ``x`` (n, D) in single precision, and the base score.

    A child has a cover of ``least_cover`` at least, which XGBoost calls ``min_child_weight``.
    """
    base = float(np.float32(y.mean()))
    margin, found = np.full(len(y), np.log(base / (1 - base)), np.float32), []
    for depth in depths:
        p = (1 / (1 + np.exp(-margin.astype(float)))).astype(np.float32)
        tree = grown(x, p - y, p * (1 - p), depth, least_cover)
        found.append(tree)
        margin = margin + tree.value[tree.leaves].astype(np.float32)[ends(tree, x)]
    return found, base


def grown(x: Array, g: Array, h: Array, depth: int, least_cover: float = 1.0) -> Tree:
    """One tree on gradients and hessians (n,)."""
    growing = _Growing(x, g.astype(np.float32), h.astype(np.float32), least_cover)
    growing.grow(np.arange(len(x)), depth)
    return growing.tree()


def ends(tree: Tree, x: Array) -> Array:
    """The place of the leaf in which each row (n,) ends."""
    return tree.reached(tree.sends_left(x))


def people() -> tuple[Array, Array]:
    """The inputs (180, 6) and labels of the people that both parties of the examples share."""
    examples = Path(__file__).parents[1] / "examples"
    texts = [(examples / f"bank_{p}.csv").read_text(encoding="utf-8") for p in ("passive", "active")]
    passive, active = ({row["id"]: row for row in csv.DictReader(t.splitlines())} for t in texts)
    both = [{**passive[name], **active[name]} for name in passive.keys() & active.keys()]
    columns = ("age", "income", "credit_score", "balance", "contacts", "loan")
    x = np.array([[float(row[column]) for column in columns] for row in both])
    return x, np.array([row["subscribed"] == "yes" for row in both])


@dataclass(eq=False)
class _Growing:
    x: Array
    g: Array
    h: Array
    least_cover: float
    nodes: list[tuple[float, ...]] = field(default_factory=list)

    def grow(self, rows: Array, depth: int) -> int:
        """Append the subtree of these rows; its node."""
        node, G, H = len(self.nodes), self.g[rows].sum(dtype=float), self.h[rows].sum(dtype=float)
        weight = -G / (H + LAMBDA)
        self.nodes.append((-1, 0, -1, -1, ETA * weight, H, weight))
        gain, feature, threshold = max(self._best(rows, j) for j in range(self.x.shape[1]))
        if depth and gain > 1e-6:
            left = self.x[rows, feature] < threshold
            children = self.grow(rows[left], depth - 1), self.grow(rows[~left], depth - 1)
            self.nodes[node] = (feature, threshold, *children, 0, H, weight)
        return node

    def _best(self, rows: Array, feature: int) -> tuple[float, int, float]:
        """The largest gain of a split by ``feature``, and its threshold."""
        order = rows[self.x[rows, feature].argsort(kind="stable")]
        values, G, H = (
            self.x[order, feature],
            self.g[order].cumsum(dtype=float),
            self.h[order].cumsum(dtype=float),
        )
        parts = [(G[:-1], H[:-1]), (G[-1] - G[:-1], H[-1] - H[:-1])]
        gain = sum(g**2 / (h + LAMBDA) for g, h in parts) - G[-1] ** 2 / (H[-1] + LAMBDA)
        allowed = (values[1:] > values[:-1]) & (np.minimum(parts[0][1], parts[1][1]) >= self.least_cover)
        if not allowed.any():
            return -np.inf, feature, 0.0
        place = int(np.where(allowed, gain, -np.inf).argmax())
        return float(gain[place]), feature, float(np.float32((values[place] + values[place + 1]) / 2))

    def tree(self) -> Tree:
        """What a file keeps."""
        feature, threshold, left, right, *rest = np.array(self.nodes, float).T
        feature, left, right = (part.astype(int) for part in (feature, left, right))
        value, cover, weight = (part.astype(np.float32).astype(float) for part in rest)
        return Tree(feature, threshold, left, right, value=value, cover=cover, weight=weight)
