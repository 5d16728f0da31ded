"""What a party saw while another vertical federation trained boosted trees, as checked arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vflens.errors import DataError
from vflens.experiments.offline.given_arrays import arrays_of
from vflens.experiments.weights.numbers import checked_numbers, checked_shapes
from vflens.types import Array
from vflens.words import counted

#: Key → its axes: M nodes, n rows, m rows of known label.
_SPACES = {"spaces": "Mn", "tree": "M", "classes": "", "known": "m", "labels": "m"}


@dataclass(frozen=True, eq=False)
class Spaces:
    """``spaces`` bool (M, n) of nodes of ``tree`` int (M,); ``known`` rows int (m,) and their ``labels``."""

    spaces: Array
    tree: Array
    classes: int
    known: Array
    labels: Array


def read_spaces(file: Path) -> Spaces:
    """The instance spaces in ``file``.

    Raises:
        DataError: an array is missing, unknown, or wrong.
        StorageError: it cannot be read.
    """
    arrays = _numbers(file, _SPACES, ("spaces", "tree", "classes"))
    if ("known" in arrays) != ("labels" in arrays):
        raise DataError(f"{file} has one of 'known' and 'labels': give both, or neither")
    arrays = {"known": np.zeros(0), "labels": np.zeros(0), **arrays}
    n = checked_shapes(file, arrays, _SPACES)["n"]
    whole = {key: _whole(file, key, arrays[key]) for key in ("tree", "classes", "known", "labels")}
    classes, known, labels = int(whole["classes"]), whole["known"], whole["labels"]
    if not 2 <= classes <= n:
        raise DataError(
            f"'classes' of {file} is {classes} with {counted(n, 'row')}: give a number from 2 to that of rows"
        )
    if len(np.unique(known)) < len(known) or known.max(initial=0) >= n or len(known) == n:
        raise DataError(
            f"'known' of {file} has a row twice, all rows, or another one than 0 to {n - 1}: give the "
            "numbers of some rows"
        )
    if labels.max(initial=0) >= classes:
        raise DataError(f"'labels' of {file} has {labels.max()}: give classes from 0 to {classes - 1}")
    return Spaces(
        spaces=_of_nodes(file, arrays["spaces"]),
        tree=whole["tree"],
        classes=classes,
        known=known,
        labels=labels,
    )


def _numbers(file: Path, axes: Mapping[str, str], needed: Sequence[str]) -> dict[str, Array]:
    """The arrays of ``file`` as float64."""
    given = arrays_of(file)
    if unknown := sorted(given.keys() - axes.keys()):
        raise DataError(f"{file} holds {unknown[0]!r}: the arrays are {', '.join(axes)}")
    if missing := [key for key in needed if key not in given]:
        raise DataError(f"{file} lacks {missing[0]!r}: give at least {', '.join(needed)}")
    plain = {key: a.astype(np.uint8) if a.dtype.kind == "b" else a for key, a in given.items()}
    return {key: checked_numbers(file, key, array) for key, array in plain.items()}


def _of_nodes(file: Path, spaces: Array) -> Array:
    """``spaces`` as bool."""
    if not np.isin(spaces, (0, 1)).all():
        raise DataError(f"'spaces' of {file} holds something else than 0 and 1: say whether a node has a row")
    if not spaces.any():
        raise DataError(f"'spaces' of {file} holds no row: give those of the nodes that were seen")
    found: Array = spaces.astype(bool)
    return found


def _whole(file: Path, key: str, numbers: Array) -> Array:
    if (numbers % 1).any() or numbers.min(initial=0) < 0:
        raise DataError(f"{key!r} of {file} holds something else than whole numbers from 0: count from 0")
    found: Array = numbers.astype(np.int64)
    return found
