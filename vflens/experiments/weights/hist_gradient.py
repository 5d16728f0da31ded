"""scikit-learn's HistGradientBoosting, in the JSON of ``examples/export_hist_gradient.py``."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from vflens.experiments.weights.trees import ROWS, TreeModel, WrongError, facts, stated_model, tree_of
from vflens.numerics.boosting.stated_counts import StatedTraining
from vflens.numerics.boosting.trees import Tree


def of_exported(found: Any) -> TreeModel:
    """The model that was exported.

    Raises:
        WrongError, or an error of a lookup or conversion: it is none, or path restriction cannot use it.
    """
    if (version := found["vflens_trees"]) != 1:
        raise WrongError(f"vflens_trees is {version!r}, not 1")
    start, inputs = np.array(found["base"], np.float64), (int(found["inputs"]), found["names"])
    trees = [_tree(number, tree, inputs[0]) for number, tree in enumerate(found["trees"])]
    untold = "bounds on its leaves hide their labels" if found["bounded"] else ""
    tells = facts(
        names=(len(inputs[1]), "name of an input", "names of inputs"),
        rows=(sum(len(tree.feature) for tree in trees), *ROWS),
        base=(len(start), "mean of the labels", "shares of the classes"),
    )
    stated = StatedTraining(float(found["rate"]), float(found["penalty"]), untold=untold)
    return stated_model(trees, start, found["loss"], inputs, stated=stated, tells=tells, dtype=np.float64)


def _tree(number: int, found: Mapping[str, Any], width: int) -> Tree:
    left = np.array(found["left"], np.float64)
    below = np.nextafter(np.array(found["threshold"], np.float64), np.inf)  # it sends x ≤ threshold left
    value = np.where(left < 0, found["value"], 0.0)
    return tree_of(number, (left, found["right"], found["feature"], below, value, found["rows"]), width)
