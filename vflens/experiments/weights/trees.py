"""Boosted trees of a file, whichever framework trained them, checked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vflens.numerics.boosting.stated_counts import StatedTraining
from vflens.numerics.boosting.trees import Tree
from vflens.types import Array
from vflens.words import counted

_MOST_PLACES = 10**8  # of nodes on paths to leaves: a byte each, twice
_MOST_INPUTS = 1 << 20  # an audited row holds a number for each
ROWS = ("number of training rows", "numbers of training rows")
_LOSSES = ("logistic", "softmax", "squared error")
_SEARCHED = "only those of XGBoost are searched"


class WrongError(Exception):
    """What a model has and cannot have."""


@dataclass(frozen=True, eq=False)
class TreeTraining:
    """All ``trees`` of a file as they were trained, and the ``score`` int (T,) to which each adds.

    ``base`` (k,) is what the base score stands for: probabilities for the ``loss`` "logistic" or "softmax",
    the first prediction for "squared error"; None if the file does not say it. A row of class 1 had the
    ``weight``. ``alone`` says why a tree may not follow from the sum of those before it, "" if it does. The
    file keeps ``pruned`` nodes besides. ``stated``: covers are numbers of rows; None: sums of hessians.
    """

    trees: tuple[Tree, ...]
    score: Array
    loss: str
    base: Array | None
    weight: float = 1.0
    alone: str = ""
    pruned: int = 0
    stated: StatedTraining | None = None


@dataclass(frozen=True, eq=False)
class TreeModel:
    """Trees whose leaves add up to k released scores; ``score`` int (T,) is the one to which each adds.

    ``width`` is the number of inputs, ``names`` theirs, in order, or (). The scores lack the base score,
    which an adversary who knows the model subtracts. Trees after best_iteration are in ``training`` alone.
    A leaf of one tree may have a value for each score. Inputs are compared in ``dtype``. ``tells`` is what
    the file holds beyond that: field and words.
    """

    trees: tuple[Tree, ...]
    score: Array
    scores: int
    width: int
    names: tuple[str, ...]
    training: TreeTraining
    dtype: type = np.float32
    tells: tuple[tuple[str, str], ...] = ()

    @property
    def classes(self) -> int:
        """The number of classes; 2 for one score."""
        return max(2, self.scores)

    def effects(self, tree: int) -> Array:
        """What each leaf of a tree adds to the sums that released scores give: (L, m).

        One score is its own sum (m = 1). Of k probabilities the k − 1 differences of scores from the first
        follow: softmax forgets a constant.
        """
        values: Array = self.trees[tree].value[self.trees[tree].leaves]
        if values.ndim == 2:
            return values[:, 1:] - values[:, :1]
        values = values[:, None]
        if self.scores == 1:
            return values
        unit = np.eye(self.scores)[self.score[tree]]
        effects: Array = values * (unit[1:] - unit[0])
        return effects


def checked_trees(trees: Sequence[Tree], score: Array, scores: int, width: int) -> tuple[Tree, ...]:
    """``trees`` of so many ``scores`` and inputs.

    Raises:
        WrongError: there are none or too many, or a tree adds to no score.
    """
    if width > _MOST_INPUTS:
        raise WrongError(f"it has {width:,} inputs, more than {_MOST_INPUTS:,}")
    if not trees or len(score) != len(trees) or score.min() < 0 or score.max() >= scores:
        raise WrongError(
            f"it has not one of {counted(scores, 'score')} for each of {counted(len(trees), 'tree')}"
        )
    places = sum(len(tree.leaves) * len(tree.feature) for tree in trees)
    if places > _MOST_PLACES:
        raise WrongError(f"its trees have {places:,} pairs of a leaf and a node, more than {_MOST_PLACES:,}")
    return tuple(trees)


def stated_model(
    trees: Sequence[Tree], start: Array, loss: str, inputs: tuple[int, Sequence[Any]], **more: Any
) -> TreeModel:
    """A model whose covers are numbers of rows.

    ``start`` (k,) are its first scores, ``inputs`` their number and names, ``more`` what is ``stated``, what
    the file ``tells``, and the ``dtype``.

    Raises:
        WrongError: see :func:`checked_trees`; or ``start`` does not fit the ``loss``.
    """
    (width, names), scores = inputs, len(start)
    if loss not in _LOSSES or (scores > 1) != (loss == "softmax"):
        raise WrongError(f"it has {counted(scores, 'first score')} with the loss {loss!r}")
    score = np.arange(len(trees)) % scores
    if trees and trees[0].value.ndim == 2:
        score = 0 * score
    kept = checked_trees(trees, score, scores, width)
    base = 0.5 * (1 + np.tanh(start / 2)) if loss == "logistic" else start
    if loss == "softmax":
        height = np.exp(start - start.max())
        base = height / height.sum()
    stated = more.pop("stated")
    training = TreeTraining(kept, score, loss=loss, base=base, alone=_SEARCHED, stated=stated)
    return TreeModel(kept, score, scores, width, names=checked_names(names, width), training=training, **more)


def facts(**found: tuple[int, str, str]) -> tuple[tuple[str, str], ...]:
    """Field and words of each fact: how many of what, one and several; those of none are left out."""
    return tuple((name, counted(n, one, ",", many=many)) for name, (n, one, many) in found.items() if n)


def checked_names(names: Sequence[Any], width: int) -> tuple[str, ...]:
    """Different ``names`` of all inputs, or none.

    Raises:
        WrongError: they are others.
    """
    if len(names) not in (0, width) or len(set(map(str, names))) != len(names):
        raise WrongError(f"feature_names has not {width} different names")
    return tuple(map(str, names))


def tree_of(number: int, arrays: Sequence[Array], width: int, weight: Array | None = None) -> Tree:
    """Tree ``number`` of ``arrays`` (n,): left and right children, negative at leaves, feature, threshold,
    value and cover. Nodes that no path reaches are dropped; a node keeps its ``weight``.

    Raises:
        WrongError: they are no tree of numbers on so many inputs.
    """
    left, right, feature, threshold, value, cover = (np.array(a, np.float64) for a in arrays)
    more = [value, cover, right, feature, threshold, *([] if weight is None else [weight])]
    if not left.size or left.ndim != 1 or any(a.shape[:1] != left.shape for a in more):
        raise WrongError(f"tree {number} has arrays of different lengths")
    if not all(np.isfinite(a).all() for a in (left, right, feature, threshold, value)):
        raise WrongError(f"tree {number} has a split or leaf that is no finite number, as another party's is")
    if any((a % 1).any() for a in (left, right, feature)):
        raise WrongError(f"tree {number} has a child or a feature that is no whole number")
    inner = left >= 0
    if ((feature[inner] < 0) | (feature[inner] >= width)).any():
        raise WrongError(f"tree {number} splits a feature that is none of {width}")
    kept = _reachable(number, left, right)
    place = np.full(len(left) + 1, -1)  # the last: no child
    place[kept] = np.arange(len(kept))
    lefts, rights = (place[np.where(inner, side, -1).astype(int)[kept]] for side in (left, right))
    features = np.where(inner, feature, -1).astype(int)[kept]
    weights = None if weight is None else weight[kept]
    return Tree(
        features, threshold[kept], lefts, rights, value=value[kept], cover=cover[kept], weight=weights
    )


def _reachable(number: int, left: Array, right: Array) -> list[int]:
    """The nodes below the root, which pruning may have cut others from; the root first."""
    kept, seen = [0], {0}
    for node in kept:  # it grows
        if left[node] < 0:
            continue
        for child in (int(left[node]), int(right[node])):
            if not 0 < child < len(left) or child in seen:
                raise WrongError(f"tree {number} has a node {child} that is shared, in a cycle or not there")
            seen.add(child)
            kept.append(child)
    return kept
