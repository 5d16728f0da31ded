"""Gradient-boosted trees of XGBoost's model files (its schema: doc/model.schema)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from vflens.experiments.weights.trees import (
    TreeModel,
    TreeTraining,
    WrongError,
    checked_names,
    checked_trees,
    facts,
    tree_of,
)
from vflens.numerics.boosting.trees import Tree
from vflens.types import Array
from vflens.words import counted

_LOSSES = {
    **dict.fromkeys(("binary:logistic", "binary:logitraw", "reg:logistic"), "logistic"),
    **dict.fromkeys(("multi:softprob", "multi:softmax"), "softmax"),
    "reg:squarederror": "squared error",
}
_ARRAYS = ("left_children", "right_children", "split_indices", "split_conditions")


def of_xgboost(document: Any) -> TreeModel:
    """The model that ``Booster.save_model`` wrote.

    Raises:
        WrongError, or an error of a lookup or conversion: it is none, or path restriction cannot use it.
    """
    learner = document["learner"]
    objective, booster = learner["objective"]["name"], learner["gradient_booster"]
    if (grown := booster["name"]) not in ("gbtree", "dart"):
        raise WrongError(f"gradient_booster.name is {grown!r}, neither 'gbtree' nor 'dart'")
    if objective not in _LOSSES:
        raise WrongError(f"objective.name is {objective!r}, not one of {', '.join(sorted(_LOSSES))}")
    params, kept = learner["learner_model_param"], booster.get("gbtree", booster)["model"]
    width, scores = int(params["num_feature"]), max(1, int(params["num_class"]))
    if int(params.get("num_target", 1)) != 1:
        raise WrongError(f"num_target is {params['num_target']}, not 1")
    trees = tuple(_tree(number, tree, width) for number, tree in enumerate(kept["trees"]))
    if scores > max(1, len(trees)):
        raise WrongError(f"num_class is {scores} with {counted(len(trees), 'tree')}, and every class has one")
    score = np.array([int(s) for s in kept["tree_info"]])
    trees = checked_trees(trees, score, scores, width)
    if (scores > 1) != (_LOSSES[objective] == "softmax"):
        raise WrongError(f"num_class is {scores} with the objective {objective!r}")
    dropped = np.array(booster.get("weight_drop", np.ones(len(trees))), np.float64)
    best = int(learner.get("attributes", {}).get("best_iteration", len(trees)))
    if best < 0 or dropped.shape != score.shape or not (np.abs(dropped) <= 1).all():
        raise WrongError("best_iteration or weight_drop does not fit its trees")
    released = [replace(tree, value=tree.value * by) for tree, by in zip(trees, dropped, strict=True)]
    used = (best + 1) * _parallel(booster) * scores
    pruned = sum(map(len, (t["left_children"] for t in kept["trees"]))) - sum(len(t.feature) for t in trees)
    training = _training(learner, trees, score, dropped, pruned)
    names = checked_names(learner.get("feature_names", ()), width)
    tells = _tells(learner, kept, names, trees)
    return TreeModel(
        tuple(released[:used]), score[:used], scores, width, names=names, training=training, tells=tells
    )


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


def _tells(
    learner: Mapping[str, Any], kept: Mapping[str, Any], names: Sequence[str], trees: Sequence[Tree]
) -> tuple[tuple[str, str], ...]:
    nodes, attributes = sum(len(tree.feature) for tree in trees), learner.get("attributes", {})
    categories = sum(len(of.get("offsets", [0])) - 1 for of in kept.get("cats", {}).get("enc", []))
    return facts(
        feature_names=(len(names), "name of an input", "names of inputs"),
        sum_hessian=(nodes, "weight of training rows", "weights of training rows"),
        base_score=(1, "mean of the labels, if it was not given", ""),
        cats=(categories, "name of a category", "names of categories"),
        attributes=(len(attributes), "note of the training", "notes of the training"),
    )


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


def _tree(number: int, document: Mapping[str, Any], width: int) -> Tree:
    if int(document["tree_param"].get("size_leaf_vector", 1)) > 1:
        raise WrongError(f"tree {number} has leaves of several values")
    if any(document.get("split_type", ())):
        raise WrongError(f"tree {number} splits categories: one-hot columns can be read")
    left, right, feature, threshold = (np.array(document[name], np.float64) for name in _ARRAYS)
    with np.errstate(over="ignore"):
        threshold = threshold.astype(np.float32).astype(np.float64)  # as XGBoost compares; JSON has decimals
    cover = np.array(document.get("sum_hessian", np.ones_like(left)), np.float64)
    weight = np.array(document["base_weights"], np.float64) if "base_weights" in document else None
    value = np.where(left < 0, threshold, 0) if left.shape == threshold.shape else threshold
    return tree_of(number, (left, right, feature, threshold, value, cover), width, weight)
