"""An audit of gradient-boosted trees: what a released score tells of the branches that a row took.

The attack is path restriction (:mod:`vflens.numerics.boosting.path_restriction`). It is compared with a
blind guess that knows the trees and the adversary's own columns, and takes the heavier branch at every split
of an unknown column.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vflens.experiments.audit.bench import Answer
from vflens.experiments.audit.given import Joint, Reading
from vflens.experiments.audit.outcomes import Paths
from vflens.experiments.audit.record import TreeFile
from vflens.experiments.weights.trees import TreeModel, TreeTraining
from vflens.numerics.boosting.first_tree import leaf_counts, leaf_rows
from vflens.numerics.boosting.later_trees import proven_boxes
from vflens.numerics.boosting.path_restriction import AgreeingLeaves, Restricted, restricted
from vflens.numerics.boosting.rates import EPS, UntoldError, rates
from vflens.numerics.boosting.stated_counts import StatedTraining, stated_means, stated_members, stated_rows
from vflens.numerics.boosting.trees import Tree
from vflens.types import Array, Document, Progress

_ROUNDING = 1e-5  # of a released score: XGBoost adds in single precision
_MOST = 1000  # boxes that are looked at for a row: tenths of a second


@dataclass(frozen=True, eq=False)
class _Forest:
    """The trees beside the rows (n, D): directions, true and heavier leaves."""

    model: TreeModel
    trees: Sequence[Tree]
    unknown: Array
    left: Sequence[Array]
    true: Sequence[Array]
    boxes: Sequence[tuple[Array, Array]]

    @classmethod
    def of(cls, model: TreeModel, joint: Joint) -> _Forest:
        left = [tree.sends_left(joint.x) for tree in model.trees]
        true = [tree.reached(at) for tree, at in zip(model.trees, left, strict=True)]
        return cls(
            model, model.trees, joint.mine, left, true, [tree.boxes(joint.mine) for tree in model.trees]
        )

    def candidates(self, row: int) -> list[AgreeingLeaves]:
        """The leaves of each tree that the adversary's own columns of ``row`` leave."""
        found = []
        for t, (tree, (low, high)) in enumerate(zip(self.trees, self.boxes, strict=True)):
            passes, goes_left = tree.goes_left
            known = passes & ~np.isin(tree.feature, self.unknown)
            kept = np.flatnonzero(~(known & (goes_left != self.left[t][row])).any(axis=1))
            found.append(AgreeingLeaves(kept, low[kept], high[kept], self.model.effects(t)[kept]))
        return found

    def sums(self, row: int) -> Array:
        """What the released scores of ``row`` tell (m,): sums over trees of the true leaves' effects."""
        sums: Array = np.sum(
            [self.model.effects(t)[self.true[t][row]] for t in range(len(self.trees))], axis=0
        )
        return sums

    def true_leaves(self, row: int) -> Array:
        """The leaf that ``row`` reaches in each tree (T,)."""
        return np.array([leaves[row] for leaves in self.true])

    def heavier(self, row: int) -> Array:
        """The leaf of each tree (T,) on the heavier branches of unknown columns, the true ones of others."""
        leaves = []
        for tree, left in zip(self.trees, self.left, strict=True):
            unknown = np.isin(tree.feature, self.unknown)
            heavy = tree.cover[tree.left] >= tree.cover[tree.right]
            leaves.append(int(tree.reached(np.where(unknown, heavy, left[row])[None])[0]))
        return np.array(leaves)

    def right(self, row: int, leaves: Array) -> tuple[int, int]:
        """Splits of unknown columns before ``leaves`` (T,): how many the row takes too, and all."""
        right = total = 0
        for tree, left, leaf in zip(self.trees, self.left, leaves, strict=True):
            passes, goes_left = tree.goes_left
            on_path = passes[leaf] & np.isin(tree.feature, self.unknown)
            total += int(on_path.sum())
            right += int((on_path & (goes_left[leaf] == left[row])).sum())
        return right, total

    def box(self, leaves: Array, low: Array, high: Array) -> tuple[Array, Array]:
        """The values between ``low`` and ``high`` (d,) that lead to ``leaves`` (T,)."""
        lows = [box[0][leaf] for box, leaf in zip(self.boxes, leaves, strict=True)]
        highs = [box[1][leaf] for box, leaf in zip(self.boxes, leaves, strict=True)]
        return np.max([low, *lows], axis=0), np.min([high, *highs], axis=0)


def attack_trees(model: TreeModel, joint: Joint, progress: Progress) -> tuple[list[Reading], float | None]:
    """What the scores, and what the leaves, tell of each row; the share of branches that a blind guess has
    right, None if no tree splits an unknown column.
    """
    forest, rows = _Forest.of(model, joint), range(len(joint.x))
    low, high = _ranges(joint)
    by_score, by_leaves, blind = [], [], []
    for row in rows:
        rng, heavier, true = joint.bench.plan.rng("paths", row), forest.heavier(row), forest.true_leaves(row)
        given = (forest.candidates(row), forest.sums(row), low, high)
        found = restricted(*given, tolerance=_ROUNDING, most=_MOST, rng=rng)
        by_score.append(_Guess(found, heavier if found.leaves is None else found.leaves))
        by_leaves.append(_Guess(Restricted(*forest.box(true, low, high), true, 1, True), true))
        blind.append(forest.right(row, heavier))
        progress("rows attacked", row + 1, len(rows))
    read = {"score": by_score, "leaves": by_leaves}
    return [_reading(name, guesses, forest, joint) for name, guesses in read.items()], _share(blind)


def told_of_training(model: TreeModel, joint: Joint) -> TreeFile:
    """What the file tells of training."""
    rows, boxes, untold = [], {}, None
    try:
        rows = _rows(model.training, joint)
        boxes = _later(model.training, joint)
    except UntoldError as error:
        untold = str(error)
    unused = len(model.training.trees) - len(model.trees)
    kept: Document = {"training_rows": rows, "training_boxes": boxes, "training_untold": untold}
    return TreeFile(**kept, pruned_nodes=model.training.pruned, unused_trees=unused)


def _rows(of: TreeTraining, joint: Joint) -> list[Document]:
    """For each leaf of each ``class``'s first tree the training ``rows`` and their ``members`` of the class,
    and the values ``low`` and ``high`` of the party's columns that lead there. The only score of two classes
    is that of class 1.

    Of squared error the ``rows`` alone, and how far the mean of their labels may be off, ``mean_label_off``,
    or None where the file does not tell it. The ``rows`` alone of a file that states nothing else.
    """
    if of.stated is not None:
        counts = [{"rows": stated_rows(of.trees[0], of.stated)}]
        with suppress(UntoldError):
            counts = _stated(of, of.stated)
    elif of.base is None:
        raise UntoldError("it has no base_score that fits its loss")
    elif of.loss == "squared error":
        if of.weight != 1:
            raise UntoldError(f"scale_pos_weight is {of.weight:g} in a regression")
        counts = [{"rows": leaf_rows(of.trees[0]), "mean_label_off": _labels(of)}]
    else:
        counts = _by_class(leaf_counts(of.trees, of.score, of.base, of.weight))
    low, high = _ranges(joint)
    leaves = []
    for k, columns in enumerate(counts):
        lows, highs = of.trees[int(np.argmax(of.score == k))].boxes(joint.mine)
        columns |= {"low": lows.clip(low, high), "high": highs.clip(low, high)}
        values = zip(*(array.tolist() for array in columns.values()), strict=True)
        leaves += [dict(zip(columns, of_leaf, strict=True)) for of_leaf in values]
    return leaves


def _stated(of: TreeTraining, stated: StatedTraining) -> list[Document]:
    """The same of covers that are numbers of rows."""
    assert of.base is not None
    if of.loss == "squared error":
        means = stated_means(of.trees[0], float(of.base[0]), stated)
        return [{"rows": stated_rows(of.trees[0], stated), "mean_label_off": 4 * EPS * np.abs(means)}]
    first = [of.trees[int(np.argmax(of.score == k))] for k in range(len(of.base))]
    members = (stated_members(tree, p, stated) for tree, p in zip(first, of.base.tolist(), strict=True))
    return _by_class([(stated_rows(tree, stated), m) for tree, m in zip(first, members, strict=True)])


def _by_class(both: Sequence[tuple[Array, Array]]) -> list[Document]:
    """Rows and members (L,) of the leaves of each score's first tree, with the class."""
    return [
        {"class": np.full(len(rows), k + (len(both) == 1)), "rows": rows, "members": members}
        for k, (rows, members) in enumerate(both)
    ]


def _labels(of: TreeTraining) -> Array:
    """How far the mean label of each leaf (L,) of the first tree may be off; None where it is not told."""
    off = np.full(len(of.trees[0].leaves), np.inf)
    with suppress(UntoldError):
        off = rates(of.trees).gradients(of.trees[0])[1] / of.trees[0].cover[of.trees[0].leaves]
    return np.array([value if np.isfinite(value) else None for value in off.tolist()])


def _later(of: TreeTraining, joint: Joint) -> Document:
    """What the first ``trees`` of logistic loss tell together.

    That is ``boxes`` with the training ``rows`` in each, of which ``least`` to ``most`` have class 1, and the
    values ``low`` and ``high`` of the party's columns that lead there; the share of rows whose class is
    ``certain``; the mean ``width`` of a row's box, as a share of a column's range, and ``first_width``, that
    of a leaf of the first tree.
    """
    if len(of.trees) == of.score.max() + 1:
        return {}
    if of.stated is not None:
        _stated(of, of.stated)
    if of.alone or of.base is None:
        raise UntoldError(of.alone)
    found = proven_boxes(of.trees, float(of.base[0]))
    if found.leaves.shape[1] < 2:
        raise UntoldError("several numbers of rows fit the second tree, or more than a search looks at")
    low, high = _boxes(of, found.leaves, joint)
    first_low, first_high = _boxes(of, found.leaves[:, :1], joint)
    kept = {"rows": found.rows, "least": found.least, "most": found.most, "low": low, "high": high}
    of_boxes = zip(*(array.tolist() for array in kept.values()), strict=True)
    one_class = (found.most == 0) | (found.least == found.rows)
    return {
        "trees": found.leaves.shape[1],
        "boxes": [dict(zip(kept, values, strict=True)) for values in of_boxes],
        "certain": float(np.average(one_class, weights=found.rows)),
        "width": _mean_width(high - low, found.rows, joint),
        "first_width": _mean_width(first_high - first_low, found.rows, joint),
    }


def _boxes(of: TreeTraining, leaves: Array, joint: Joint) -> tuple[Array, Array]:
    """The values (C, d) of the party's columns that lead to ``leaves`` (C, t) of the first trees."""
    ends = [tree.boxes(joint.mine) for tree in of.trees[: leaves.shape[1]]]
    lows, highs = ([box[side][leaf] for box, leaf in zip(ends, leaves.T, strict=True)] for side in (0, 1))
    low, high = _ranges(joint)
    return np.max(lows, axis=0).clip(low, high), np.min(highs, axis=0).clip(low, high)


def _mean_width(width: Array, rows: Array, joint: Joint) -> float:
    """The mean width of boxes (C, d) with so many rows (C,), beside the ranges of the columns."""
    low, high = _ranges(joint)
    shares = width / np.where(high > low, high - low, 1)
    return float(np.average(shares.mean(axis=1), weights=rows))


class _Guess(NamedTuple):
    """What was released of a row leaves ``found``; the adversary believes in the ``leaves`` (T,)."""

    found: Restricted
    leaves: Array


def _ranges(joint: Joint) -> tuple[Array, Array]:
    """The least and largest value of each of the party's columns (d,), also in single precision."""
    mine = joint.x[:, joint.mine].astype(np.float64)
    low, high = joint.bounds.T
    return np.minimum(low, mine.min(axis=0)), np.maximum(high, mine.max(axis=0))


def _share(counted: Sequence[tuple[int, int]]) -> float | None:
    """Right branches of all; None if no tree splits an unknown column."""
    right, total = np.sum(counted, axis=0)
    return float(right / total) if total else None


def _middles(guesses: Sequence[_Guess], forest: _Forest) -> Array:
    """The estimates (n, d): middles of intervals, or of one found choice where the search stopped early."""
    boxes = [
        (f.low, f.high) if f.complete or not f.found else forest.box(leaves, f.low, f.high)
        for f, leaves in guesses
    ]
    middles: Array = np.mean(boxes, axis=1)
    return middles


def _reading(released: str, guesses: Sequence[_Guess], forest: _Forest, joint: Joint) -> Reading:
    """The estimates, and widths of the intervals, in columns scaled to [0, 1]."""
    low, width = joint.bounds[:, 0], np.ptp(joint.bounds, axis=1)
    unit, found = np.where(width > 0, width, 1.0), [guess.found for guess in guesses]
    values = (_middles(guesses, forest) - low) / unit
    widths = np.array([r.high - r.low for r in found]) / unit
    paths = Paths(
        widths=tuple(widths.clip(0, 1).mean(axis=0).tolist()),
        right_branches=_share([forest.right(i, g.leaves) for i, g in enumerate(guesses)]),
        determined=float(np.mean([r.complete and r.found == 1 for r in found])),
        unfinished=float(np.mean([not r.complete for r in found])),
    )
    return Reading(released, Answer("pra", joint.bench.rows, values), {"paths": paths})
