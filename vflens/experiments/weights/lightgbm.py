"""Gradient-boosted trees of LightGBM: the text of ``save_model`` and the JSON of ``dump_model``.

A leaf has its number of rows, ``leaf_count``. Values of the first trees include the first score. It follows:
the gradients of all rows sum to 0, and a row's hessian, leaf_weight / leaf_count, is p (1 − p).
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from vflens.experiments.weights.trees import ROWS, TreeModel, WrongError, facts, stated_model, tree_of
from vflens.numerics.boosting.stated_counts import StatedTraining
from vflens.numerics.boosting.trees import Tree
from vflens.types import Array, Document

_LOSSES = {"binary": "logistic", "multiclass": "softmax", "regression": "squared error"}
_BENDS = ("lambda_l1", "max_delta_step", "path_smooth", "use_quantized_grad", "is_unbalance")
_LEAF = ("leaf_value", "leaf_count", "leaf_weight")
_INNER = ("split_feature", "threshold", "decision_type", "internal_count", "left_child", "right_child")
_EXTREMES = "columns' least and largest training values"
_MISSING = {"None": 0, "Zero": 4, "NaN": 8}  # bits of decision_type


def of_text(text: Any) -> TreeModel:
    """The model in the ``text`` of ``Booster.save_model``.

    Raises:
        as :func:`of_lightgbm`.
    """
    trees, end, rest = text.replace("\r\n", "\n").partition("\nend of trees")
    head, *parts = trees.split("\nTree=")
    if not head.startswith("tree\n") or not end:
        raise WrongError("it does not begin with 'tree' and hold 'end of trees'")
    found = _pairs(head) | {"tree_info": [_pairs(part) for part in parts]}
    found |= {key: found[key].split() for key in ("feature_names", "feature_infos")}
    lines = rest.splitlines()
    found["parameters"] = dict(line[1:-1].split(": ", 1) for line in lines if line.startswith("["))
    named = [line.partition(":")[2] for line in lines if line.startswith("pandas_categorical:")]
    return _model({**found, "pandas_categorical": json.loads(named[0]) if named else None})


def _pairs(text: str) -> Document:
    """Names and values; a name without a value is true."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {key: value if equals else True for key, equals, value in pairs}


def of_lightgbm(document: Any) -> TreeModel:
    """The model that ``Booster.dump_model`` gave.

    Raises:
        WrongError, or an error of a lookup or conversion: it is none, or path restriction cannot use it.
    """
    trees = [{**tree, **_flat(tree["tree_structure"])} for tree in document["tree_info"]]
    return _model({**document, "tree_info": trees, "parameters": {}})


def _flat(root: Document) -> Document:
    """The arrays of a nested tree, as text has them."""
    nodes, inner, leaves, place = [root], list[Document](), list[Document](), {}
    for node in nodes:  # it grows
        kind = leaves if "leaf_value" in node else inner
        place[id(node)] = ~len(leaves) if kind is leaves else len(inner)
        kind.append(node)
        nodes += [] if kind is leaves else [node["left_child"], node["right_child"]]
    arrays = {key: [node.get(key, 0) for node in leaves] for key in _LEAF}
    arrays |= {key: [node[key] for node in inner] for key in (*_INNER, "internal_value")}
    arrays["decision_type"] = [_MISSING[node["missing_type"]] for node in inner]
    return arrays | {side: [place[id(node[side])] for node in inner] for side in _INNER[4:]}


def _model(document: Document) -> TreeModel:
    if str(document["version"]) not in ("v3", "v4"):
        raise WrongError(f"version is {document['version']!r}, neither 'v3' nor 'v4'")
    objective, *options = str(document.get("objective", "none")).split()
    if objective not in _LOSSES or any(o.startswith("sigmoid") and o != "sigmoid:1" for o in options):
        raise WrongError(f"objective is {document.get('objective')!r}, not one of {', '.join(_LOSSES)}")
    scores, width, loss = (
        int(document["num_tree_per_iteration"]), int(document["max_feature_idx"]) + 1, _LOSSES[objective]
    )  # fmt: skip
    parts = [_tree(number, tree, width) for number, tree in enumerate(document["tree_info"])]
    starts, stated = _stated(document, parts[:scores], loss)
    share = scores / len(parts) if document.get("average_output") else 1.0
    shift = [*starts.tolist(), *[0.0] * len(parts)]
    trees = [
        replace(tree, value=np.where(tree.feature < 0, tree.value - off, 0) * share)
        for (tree, _), off in zip(parts, shift, strict=False)
    ]
    categories = sum(map(len, document.get("pandas_categorical") or []))
    inputs, stated_by = (width, document["feature_names"]), document["parameters"]
    tells = facts(
        feature_names=(len(inputs[1]), "name of an input", "names of inputs"),
        feature_infos=(
            sum(info != "none" for info in document["feature_infos"]),
            "least and largest training value",
            _EXTREMES,
        ),
        leaf_count=(sum(len(tree.leaves) for tree in trees), *ROWS),
        pandas_categorical=(categories, "name of a category", "names of categories"),
        data=(int(bool(stated_by.get("data"))), "path of the training file", ""),
        valid=(int(bool(stated_by.get("valid"))), "path of a validation file", ""),
    )
    return stated_model(trees, starts, loss, inputs, stated=stated, tells=tells, dtype=np.float64)


def _tree(number: int, document: Document, width: int) -> tuple[Tree, Array]:
    """A tree whose covers are numbers of rows, and the hessians of its leaves (L,)."""
    if int(document.get("num_cat", 0)) or int(document.get("is_linear", 0)):
        raise WrongError(f"tree {number} splits categories or has linear leaves: numbers can be read")
    value, count, weight = (_numbers(document[key]) for key in _LEAF)
    feature, below, kind, cover, left, right = (_numbers(document[key]) for key in _INNER)
    if ((kind.astype(int) & 12) == _MISSING["Zero"]).any():
        raise WrongError(f"tree {number} takes 0 for missing: train without zero_as_missing")
    inner, leaves = len(feature), len(value)
    if leaves == 1:  # a lone leaf may have no counts
        count, weight = (np.resize(a, 1) for a in (count, weight))
    sides = [np.concatenate([np.where(a < 0, inner - a - 1, a), np.full(leaves, -1)]) for a in (left, right)]
    none, below = np.zeros(leaves), np.nextafter(below, np.inf)  # it sends x ≤ threshold left
    pairs = (feature, none), (below, none), (0 * feature, value), (cover, count), (0 * feature, weight)
    *arrays, hessian = (np.concatenate(pair) for pair in pairs)
    tree = tree_of(number, (*sides, *arrays), width, hessian)
    assert tree.weight is not None
    return replace(tree, weight=None), tree.weight[tree.leaves]


def _numbers(document: Any) -> Array:
    return np.array(document.split() if isinstance(document, str) else document, np.float64)


def _stated(
    document: Document, first: Sequence[tuple[Tree, Array]], loss: str
) -> tuple[Array, StatedTraining]:
    """The first scores, and what is stated of the first trees."""
    of, trees, scores = document["parameters"], document["tree_info"], len(first)
    shrunk = [float(tree["shrinkage"]) for tree in trees]
    held = set(shrunk[:scores]) == {1.0}
    factor = scores / max(1, scores - 1)
    both = [
        _start(tree, *part, factor, of.get("lambda_l2")) for tree, part in zip(trees, first, strict=False)
    ]
    starts, penalties = np.array(both).reshape(-1, 2).T
    rates = set(shrunk[scores:]) or {float(of.get("learning_rate", 0))}
    p = np.exp(starts.clip(max=0)) if loss == "softmax" else 0.5 * (1 + np.tanh(starts / 2))
    due = 1 if loss == "squared error" else factor * p * (1 - p)
    hessians = [weight.sum() / max(1, tree.cover[tree.leaves].sum()) for tree, weight in first]
    reasons = {
        **{f"{key} is {of.get(key)}": bool(float(of.get(key) or 0)) for key in _BENDS},
        "its trees were not boosted one after the other": bool(document.get("average_output"))
        or of.get("boosting", "gbdt") not in ("gbdt", "goss"),
        "its first tree does not hold the first score": not held,
        "dump_model leaves out the penalty, save_model has it": loss == "squared error" and not of,
        "it hides the learning rate or the penalty": len(rates) > 1 or min(rates) <= 0
        or not np.isfinite(penalties).all(),
        "its leaf_weight are not of its first score: rows had weights, or it was refitted": bool(
            (penalties < -1e-6).any()
        )
        or not np.allclose(hessians, due, 1e-4),
    }  # fmt: skip
    untold = next((reason for reason, holds in reasons.items() if holds), "")
    distributed = of.get("tree_learner", "serial") != "serial"
    uncounted = "counts of distributed training are estimates" if distributed else ""
    penalty = max(0.0, float(penalties[0]))
    return starts, StatedTraining(min(rates) or 1.0, penalty, factor, untold=untold, uncounted=uncounted)


def _start(
    document: Document, tree: Tree, hessian: Array, factor: float, stated: str | None
) -> tuple[float, float]:
    """The first score, and λ, which text states. JSON has the score at the root, rounded: with the hessian of
    a row it tells which whole number of rows has the class.
    """
    value, rows = tree.value[tree.leaves], tree.cover[tree.leaves].sum()
    if stated is not None:
        weight = hessian + float(stated)
        return float(value @ weight / max(weight.sum(), 1e-300)), float(stated)
    squared = 0.25 - hessian.sum() / max(1, rows) / factor
    if len(value) == 1 or squared < 0:
        return 0.0, np.nan
    with np.errstate(all="ignore"):
        p = np.array([round((0.5 + side) * rows) / rows for side in (-(squared**0.5), squared**0.5)])
        starts = np.log(p) if factor != 1 else np.log(p / (1 - p))
        start = starts[np.abs(starts - float(document["internal_value"][0])).argmin()]
        step = value - start
        penalty = -(step @ hessian) / step.sum()
    return float(start), 0.0 if abs(step @ hessian) < 1e-6 * (abs(step) @ hessian) else float(penalty)
