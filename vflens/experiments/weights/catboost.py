"""Gradient-boosted trees of CatBoost: the JSON of ``save_model(…, format="json")``.

A leaf has its number of rows, ``leaf_weights``. Of k classes it has k values. A row goes right where it is
above a border, in single precision; leaf Σ 2^i has gone right at the splits i.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from vflens.experiments.weights.trees import ROWS, TreeModel, WrongError, facts, stated_model, tree_of
from vflens.numerics.boosting.stated_counts import StatedTraining
from vflens.numerics.boosting.trees import Tree

_LOSSES = {"Logloss": "logistic", "MultiClass": "softmax", "RMSE": "squared error"}
_DEEPEST = 16  # CatBoost's own bound


def of_catboost(document: Any) -> TreeModel:
    """The model that CatBoost wrote.

    Raises:
        WrongError, or an error of a lookup or conversion: it is none, or path restriction cannot use it.
    """
    info, features = document["model_info"], document["features_info"]
    params, columns = info["params"], features["float_features"]
    if set(features) != {"float_features"}:
        counts = sum(
            len(of["hash_map"]) // of["hash_stride"] for of in (document.get("ctr_data") or {}).values()
        )
        raise WrongError(f"it has categories, and counts the labels of {counts} of them: numbers can be read")
    if "oblivious_trees" not in document:
        raise WrongError("its trees are not symmetric: train it with grow_policy SymmetricTree")
    objective, start = params["loss_function"]["type"], np.array(document["scale_and_bias"][1], np.float64)
    if objective not in _LOSSES:
        raise WrongError(f"loss_function is {objective!r}, not one of {', '.join(_LOSSES)}")
    width, named = len(columns), [of["feature_id"] for of in columns if of.get("feature_id")]
    trees = [
        _tree(number, tree, width, len(start)) for number, tree in enumerate(document["oblivious_trees"])
    ]
    tells = facts(
        feature_id=(len(named), "name of an input", "names of inputs"),
        borders=(sum(len(of["borders"] or ()) for of in columns), "bound between training values", ""),
        leaf_weights=(sum(len(tree.leaves) for tree in trees), *ROWS),
        class_params=(len(info.get("class_params", {}).get("class_names", ())), "name of a class", ""),
        output_options=(int("train_dir" in info.get("output_options", "")), "path of the training", ""),
        train_finish_time=(int("train_finish_time" in info), "time of the training", ""),
    )
    loss = _LOSSES[objective]
    return stated_model(trees, start, loss, (width, named), stated=_stated(params, loss), tells=tells)


def _tree(number: int, document: Mapping[str, Any], width: int, scores: int) -> Tree:
    splits = document.get("splits") or []
    if len(splits) > _DEEPEST or any(split["split_type"] != "FloatFeature" for split in splits):
        raise WrongError(f"tree {number} splits categories, or more than {_DEEPEST} times")
    leaves = 1 << len(splits)
    values = np.array(document["leaf_values"], np.float64).reshape(leaves, scores)
    rows = np.array(document["leaf_weights"], np.float64).reshape(leaves)
    nodes = 2 * leaves - 1  # as in a heap: those of a level ask its split, the leaves are last
    level = np.log2(np.arange(nodes) + 1.5).astype(int)
    inner = np.arange(nodes) < leaves - 1
    asked = [*splits, {"float_feature_index": 0, "border": 0.0}]
    feature, border = (np.array([s[key] for s in asked])[level] for key in ("float_feature_index", "border"))
    below = np.nextafter(border.astype(np.float32), np.float32(np.inf))
    left = np.where(inner, 2 * np.arange(nodes) + 1, -1)
    value, cover = np.zeros((nodes, scores)), np.zeros(nodes)
    turned = np.zeros(1, int)  # the first split is a leaf's lowest bit, and a heap's highest
    for i in range(len(splits)):
        turned = np.stack([turned, turned + (1 << i)], axis=1).ravel()
    value[~inner], cover[~inner] = values[turned], rows[turned]
    for node in np.flatnonzero(inner)[::-1]:
        cover[node] = cover[2 * node + 1] + cover[2 * node + 2]
    value = value[:, 0] if scores == 1 else value
    return tree_of(number, (left, np.where(inner, left + 1, -1), feature, below, value, cover), width)


def _stated(params: Mapping[str, Any], loss: str) -> StatedTraining:
    """All rows make a leaf's value, whichever were drawn to choose its splits."""
    learner, boosting = params["tree_learner_options"], params["boosting_options"]
    data = params["data_processing_options"]
    weighted = bool(data.get("class_weights")) or data.get("auto_class_weights", "None") != "None"
    reasons = {
        "its leaves weigh rows by their class": weighted,
        "the values of a leaf are those of several classes": loss == "softmax",
        "its leaves were not estimated by Newton's steps": learner["leaf_estimation_method"] != "Newton",
        "its trees were shrunk later": float(boosting.get("model_shrink_rate", 0)) != 0,
    }
    untold = next((reason for reason, holds in reasons.items() if holds), "")
    rate, penalty = float(boosting["learning_rate"]), float(learner["l2_leaf_reg"])
    steps, uncounted = int(learner["leaf_estimation_iterations"]), untold if weighted else ""
    return StatedTraining(rate, penalty, steps=steps, untold=untold, uncounted=uncounted)
