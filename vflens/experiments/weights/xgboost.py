"""Gradient-boosted trees from XGBoost's model files, JSON and UBJSON (its schema: doc/model.schema)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from vflens.errors import DataError
from vflens.experiments.weights.ubjson import parse
from vflens.numerics.boosting.trees import Tree
from vflens.storage.json_file import in_words
from vflens.types import Array
from vflens.words import counted

_LARGEST = 1 << 26  # bytes of a file: values in memory take up to 40 times as much
_MOST_PLACES = 10**8  # of nodes on paths to leaves: a byte each, twice
_MOST_INPUTS = 1 << 20  # an audited row holds a number for each
_LOSSES = {
    **dict.fromkeys(("binary:logistic", "binary:logitraw", "reg:logistic"), "logistic"),
    **dict.fromkeys(("multi:softprob", "multi:softmax"), "softmax"),
    "reg:squarederror": "squared error",
}
_ARRAYS = ("left_children", "right_children", "split_indices", "split_conditions")


@dataclass(frozen=True, eq=False)
class TreeTraining:
    """All ``trees`` of a file as they were trained, and the ``score`` int (T,) to which each adds.

    ``base`` (k,) is what the base score stands for: probabilities for the ``loss`` "logistic" or "softmax",
    the first prediction for "squared error"; None if the file does not say it. A row of class 1 had the
    ``weight``. ``alone`` says why a tree may not follow from the sum of those before it, "" if it does. The
    file keeps ``pruned`` nodes besides.
    """

    trees: tuple[Tree, ...]
    score: Array
    loss: str
    base: Array | None
    weight: float
    alone: str
    pruned: int


@dataclass(frozen=True, eq=False)
class TreeModel:
    """Trees whose leaves add up to k released scores; ``score`` int (T,) is the one to which each adds.

    ``width`` is the number of inputs, ``names`` theirs, in order, or (). The scores lack the base score,
    which an adversary who knows the model subtracts. Trees after best_iteration are in ``training`` alone.
    """

    trees: tuple[Tree, ...]
    score: Array
    scores: int
    width: int
    names: tuple[str, ...]
    training: TreeTraining

    @property
    def classes(self) -> int:
        """The number of classes; 2 for one score."""
        return max(2, self.scores)

    def effects(self, tree: int) -> Array:
        """What each leaf of a tree adds to the sums that released scores give: (L, m).

        One score is its own sum (m = 1). Of k probabilities the k − 1 differences of scores from the first
        follow: softmax forgets a constant.
        """
        values: Array = self.trees[tree].value[self.trees[tree].leaves, None]
        if self.scores == 1:
            return values
        unit = np.eye(self.scores)[self.score[tree]]
        effects: Array = values * (unit[1:] - unit[0])
        return effects


def read_xgboost(file: Path) -> TreeModel:
    """The model in ``file``, of ``Booster.save_model`` with the ending .ubj or .json.

    Raises:
        DataError: it cannot be read, is no booster of trees, or has what path restriction cannot use; the
            sentence names the field.
    """
    if file.stat().st_size > _LARGEST:
        raise DataError(
            f"{file} has {counted(file.stat().st_size, 'byte', ',')}: give a model of at most {_LARGEST:,}"
        )
    try:
        data = file.read_bytes()
        found = parse(data) if file.suffix.lower() == ".ubj" else json.loads(data, parse_constant=_no_number)
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(
            f"{file} cannot be read as a model of XGBoost ({in_words(error)}): write it with "
            "booster.save_model"
        ) from error
    try:
        return _model(found)
    except (_WrongError, KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else in_words(error)
        raise DataError(
            f"{file} is no model that path restriction reads: {reason}; write a booster of trees with "
            "booster.save_model"
        ) from error


class _WrongError(Exception):
    """What a model has and cannot have."""


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"it holds {text}")


def _model(found: Any) -> TreeModel:
    learner = found["learner"]
    objective, booster = learner["objective"]["name"], learner["gradient_booster"]
    if booster["name"] not in ("gbtree", "dart"):
        raise _WrongError(f"gradient_booster.name is {booster['name']!r}, neither 'gbtree' nor 'dart'")
    if objective not in _LOSSES:
        raise _WrongError(f"objective.name is {objective!r}, not one of {', '.join(sorted(_LOSSES))}")
    facts, kept = learner["learner_model_param"], booster.get("gbtree", booster)["model"]
    width, scores = int(facts["num_feature"]), max(1, int(facts["num_class"]))
    if width > _MOST_INPUTS:
        raise _WrongError(f"num_feature is {width:,}, more than {_MOST_INPUTS:,}")
    if int(facts.get("num_target", 1)) != 1:
        raise _WrongError(f"num_target is {facts['num_target']}, not 1")
    trees = tuple(_tree(number, tree, width) for number, tree in enumerate(kept["trees"]))
    if scores > max(1, len(trees)):
        raise _WrongError(
            f"num_class is {scores} with {counted(len(trees), 'tree')}, and every class has one"
        )
    score = np.array([int(s) for s in kept["tree_info"]])
    if not trees or len(score) != len(trees) or score.min() < 0 or score.max() >= scores:
        raise _WrongError(
            f"tree_info has not one of {counted(scores, 'score')} for each of {counted(len(trees), 'tree')}"
        )
    if (scores > 1) != (_LOSSES[objective] == "softmax"):
        raise _WrongError(f"num_class is {scores} with the objective {objective!r}")
    places = sum(len(tree.leaves) * len(tree.feature) for tree in trees)
    if places > _MOST_PLACES:
        raise _WrongError(f"its trees have {places:,} pairs of a leaf and a node, more than {_MOST_PLACES:,}")
    dropped = np.array(booster.get("weight_drop", np.ones(len(trees))), np.float64)
    best = int(learner.get("attributes", {}).get("best_iteration", len(trees)))
    if best < 0 or dropped.shape != score.shape or not (np.abs(dropped) <= 1).all():
        raise _WrongError("best_iteration or weight_drop does not fit its trees")
    released = [replace(tree, value=tree.value * by) for tree, by in zip(trees, dropped, strict=True)]
    used = (best + 1) * _parallel(booster) * scores
    pruned = sum(map(len, (t["left_children"] for t in kept["trees"]))) - sum(len(t.feature) for t in trees)
    training = _training(learner, trees, score, dropped, pruned)
    names = _names(learner, width)
    return TreeModel(tuple(released[:used]), score[:used], scores, width, names=names, training=training)


def _training(
    learner: Mapping[str, Any], trees: tuple[Tree, ...], score: Array, dropped: Array, pruned: int
) -> TreeTraining:
    objective, booster = learner["objective"], learner["gradient_booster"]
    loss, weight = _LOSSES[objective["name"]], objective.get("reg_loss_param", {}).get("scale_pos_weight", 1)
    reasons = {
        f"scale_pos_weight is {float(weight):g}": float(weight) != 1,
        "several trees grew at a time": _parallel(booster) > 1,
        "dart left trees out of others": bool((dropped != 1).any()),
        "only those of one logistic score are searched": loss != "logistic",
    }
    alone = next((reason for reason, holds in reasons.items() if holds), "")
    base = _base(learner["learner_model_param"], objective["name"], int(score.max()) + 1)
    return TreeTraining(trees, score, loss=loss, base=base, weight=float(weight), alone=alone, pruned=pruned)


def _parallel(booster: Mapping[str, Any]) -> int:
    facts = booster.get("gbtree", booster)["model"].get("gbtree_model_param", {})
    return max(1, int(facts.get("num_parallel_tree", 1)))


def _base(facts: Mapping[str, Any], objective: str, scores: int) -> Array | None:
    """A probability for the logistic loss, but the margin for logitraw; for softmax logits, of older versions
    one for all classes.
    """
    if "base_score" not in facts:
        return None
    base = np.array(str(facts["base_score"]).strip("[]").split(","), np.float64)
    if len(base) not in (1, scores):
        return None
    with np.errstate(over="ignore"):  # a probability of 0
        if objective == "binary:logitraw":
            base = 1 / (1 + np.exp(-base))
    if _LOSSES[objective] == "softmax":
        height = np.exp(base - base.max()) * np.ones(scores)
        base = height / height.sum()
    if _LOSSES[objective] == "squared error":
        return base if np.isfinite(base).all() else None
    return base if ((base > 0) & (base < 1)).all() else None


def _names(learner: Mapping[str, Any], width: int) -> tuple[str, ...]:
    names = tuple(map(str, learner.get("feature_names", ())))
    if len(names) not in (0, width) or len(set(names)) != len(names):
        raise _WrongError(f"feature_names has not {width} different names")
    return names


def _tree(number: int, found: Mapping[str, Any], width: int) -> Tree:
    if int(found["tree_param"].get("size_leaf_vector", 1)) > 1:
        raise _WrongError(f"tree {number} has leaves of several values")
    if any(found.get("split_type", ())):
        raise _WrongError(f"tree {number} splits categories: one-hot columns can be read")
    left, right, feature, threshold = (np.array(found[name], np.float64) for name in _ARRAYS)
    with np.errstate(over="ignore"):
        threshold = threshold.astype(np.float32).astype(np.float64)  # as XGBoost compares; JSON has decimals
    if not left.size or left.ndim != 1 or {a.shape for a in (right, feature, threshold)} != {left.shape}:
        raise _WrongError(f"tree {number} has arrays of different lengths")
    if not all(np.isfinite(a).all() for a in (left, right, feature, threshold)):
        raise _WrongError(
            f"tree {number} has a split or leaf that is no finite number, as another party's is"
        )
    if any((a % 1).any() for a in (left, right, feature)):
        raise _WrongError(f"tree {number} has a child or a feature that is no whole number")
    inner = left >= 0
    if ((feature[inner] < 0) | (feature[inner] >= width)).any():
        raise _WrongError(f"tree {number} splits a feature that is none of {width}")
    cover = np.array(found.get("sum_hessian", np.ones_like(left)), np.float64)
    if cover.shape != left.shape:
        raise _WrongError(f"tree {number} has arrays of different lengths")
    weight = np.array(found["base_weights"], np.float64) if "base_weights" in found else None
    if weight is not None and weight.shape != left.shape:
        raise _WrongError(f"tree {number} has arrays of different lengths")
    kept = _reachable(number, left, right)
    place = np.full(len(left) + 1, -1)  # the last: no child
    place[kept] = np.arange(len(kept))
    lefts, rights = (place[np.where(inner, side, -1).astype(int)[kept]] for side in (left, right))
    features = np.where(inner, feature, -1).astype(int)[kept]
    value = np.where(inner, 0.0, threshold)[kept]
    weights = None if weight is None else weight[kept]
    return Tree(features, threshold[kept], lefts, rights, value=value, cover=cover[kept], weight=weights)


def _reachable(number: int, left: Array, right: Array) -> list[int]:
    """The nodes below the root, which pruning may have cut others from; the root first."""
    kept, seen = [0], {0}
    for node in kept:  # it grows
        if left[node] < 0:
            continue
        for child in (int(left[node]), int(right[node])):
            if not 0 < child < len(left) or child in seen:
                raise _WrongError(f"tree {number} has a node {child} that is shared, in a cycle or not there")
            seen.add(child)
            kept.append(child)
    return kept
