"""Boosted trees in a file of XGBoost, LightGBM or CatBoost, or of our exporter for scikit-learn."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from vflens.errors import DataError
from vflens.experiments.weights.catboost import of_catboost
from vflens.experiments.weights.lightgbm import of_lightgbm, of_text
from vflens.experiments.weights.trees import ROWS, TreeModel, WrongError, facts, stated_model, tree_of
from vflens.experiments.weights.ubjson import parse
from vflens.experiments.weights.xgboost import of_xgboost
from vflens.numerics.boosting.stated_counts import StatedTraining
from vflens.numerics.boosting.trees import Tree
from vflens.storage.json_file import in_words
from vflens.words import counted


def of_exported(document: Any) -> TreeModel:
    """The model that was exported.

    Raises:
        WrongError, or an error of a lookup or conversion: it is none, or path restriction cannot use it.
    """
    if (version := document["vflens_trees"]) != 1:
        raise WrongError(f"vflens_trees is {version!r}, not 1")
    start, inputs = np.array(document["base"], np.float64), (int(document["inputs"]), document["names"])
    trees = [_tree(number, tree, inputs[0]) for number, tree in enumerate(document["trees"])]
    untold = "bounds on its leaves hide their labels" if document["bounded"] else ""
    tells = facts(
        names=(len(inputs[1]), "name of an input", "names of inputs"),
        rows=(sum(len(tree.feature) for tree in trees), *ROWS),
        base=(len(start), "mean of the labels", "shares of the classes"),
    )
    stated = StatedTraining(float(document["rate"]), float(document["penalty"]), untold=untold)
    return stated_model(trees, start, document["loss"], inputs, stated=stated, tells=tells, dtype=np.float64)


def _tree(number: int, document: Mapping[str, Any], width: int) -> Tree:
    left = np.array(document["left"], np.float64)
    below = np.nextafter(np.array(document["threshold"], np.float64), np.inf)  # it sends x ≤ threshold left
    value = np.where(left < 0, document["value"], 0.0)
    return tree_of(
        number, (left, document["right"], document["feature"], below, value, document["rows"]), width
    )


_LARGEST = 1 << 26  # bytes of a file: values in memory take up to 40 times as much


class _Format(NamedTuple):
    """A framework, what makes a model of its files, and how to write one."""

    name: str
    model: Callable[[Any], TreeModel]
    remedy: str


_XGBOOST = _Format("XGBoost", of_xgboost, "write a booster of trees with booster.save_model")
_TEXT = _Format("LightGBM", of_text, "write it with booster.save_model")
#: A key that only this format has → the format.
_FORMATS: Mapping[str, _Format] = {
    "tree_info": _Format("LightGBM", of_lightgbm, "write json.dumps(booster.dump_model())"),
    "features_info": _Format("CatBoost", of_catboost, 'write it with model.save_model(file, format="json")'),
    "vflens_trees": _Format("scikit-learn", of_exported, "write it with examples/export_hist_gradient.py"),
}


def read_trees(file: Path) -> TreeModel:
    """The model in ``file``: UBJSON of XGBoost, text of LightGBM, else JSON.

    Raises:
        DataError: it cannot be read, is no booster of trees, or has what path restriction cannot use; the
            sentence names the field.
    """
    if file.stat().st_size > _LARGEST:
        raise DataError(
            f"{file} has {counted(file.stat().st_size, 'byte', ',')}: give a model of at most {_LARGEST:,}"
        )
    of = _TEXT if file.suffix.lower() == ".txt" else _XGBOOST
    try:
        found = _parsed(file)
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(
            f"{file} cannot be read as a model of {of.name} ({in_words(error)}): write it with "
            "booster.save_model"
        ) from error
    if isinstance(found, dict):
        of = next((of for key, of in _FORMATS.items() if key in found), _XGBOOST)
    try:
        return of.model(found)
    except (
        WrongError, LookupError, TypeError, ValueError, OverflowError, AttributeError, RecursionError
    ) as error:  # fmt: skip
        reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else in_words(error)
        raise DataError(f"{file} is no model that path restriction reads: {reason}; {of.remedy}") from error


def _parsed(file: Path) -> Any:
    data = file.read_bytes()
    if file.suffix.lower() == ".ubj":
        return parse(data)
    return data.decode() if file.suffix.lower() == ".txt" else json.loads(data, parse_constant=_no_number)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"it holds {text}")
