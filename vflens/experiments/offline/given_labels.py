"""Guesses of labels in a federation that VFLens did not run, scored against the labels of its owner."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from vflens.errors import DataError
from vflens.experiments.weights.numbers import checked_numbers
from vflens.numerics.measures.ranking import auc
from vflens.plugins.attack import up_to_renaming
from vflens.score.labels import named
from vflens.types import Array, Document
from vflens.words import counted


def score_labels(
    file: Path, estimate: Mapping[str, Array], truth: Path, given: Mapping[str, Array]
) -> Document:
    """The share of right labels in ``estimate``, of ``file``, against ``y`` (M,) ``given`` in ``truth``.

    ``y`` are the labels of the rows 0 to M − 1, as numbers of classes from 0. The blind guess is the most
    frequent class of the estimated rows. Clusters get the names of classes that make most labels right.

    Raises:
        DataError: a file lacks an array, or one is wrong.
    """
    if not {"attack", "values", "rows"} <= estimate.keys() or estimate["rows"].dtype.kind not in "iu":
        raise DataError(f"{file} is no estimate of labels: write one with `vflens attack`")
    values, rows, attack = (
        checked_numbers(file, "values", estimate["values"], 2),
        estimate["rows"],
        str(estimate["attack"]),
    )
    if not len(rows) or rows.shape != values.shape[:1] or rows.min() < 0:
        raise DataError(
            f"{file} has values of shape {values.shape} for rows of shape {rows.shape}: attack again"
        )
    labels = _labels(truth, given, int(rows.max()), values.shape[1])[rows]
    nameless = bool(estimate.get("clusters", up_to_renaming(attack)))
    beliefs = named(values, labels) if nameless else values
    return {
        "attack": attack,
        "rows": len(rows),
        "label_accuracy": float((beliefs.argmax(axis=1) == labels).mean()),
        "label_auc": auc(beliefs, labels),
        "blind_guess": "the most frequent class",
        "blind_label_accuracy": float(np.bincount(labels).max() / len(labels)),
    }


def _labels(file: Path, given: Mapping[str, Array], last: int, classes: int) -> Array:
    """The labels int64 (M,) of ``file``, those of row ``last`` among them."""
    if "y" not in given:
        raise DataError(f"{file} lacks 'y': give the labels of all rows, as numbers of classes from 0")
    y = checked_numbers(file, "y", given["y"], 1)
    if not np.isin(y, np.arange(classes)).all():
        raise DataError(f"'y' of {file} has other values than 0 to {classes - 1}: give numbers of classes")
    if len(y) <= last:
        raise DataError(
            f"'y' of {file} has {counted(len(y), 'label')}, the estimate row {last}: give those of all rows"
        )
    return y.astype(np.int64)
