"""What a party saw while another vertical federation trained boosted trees, as checked arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vflens.errors import DataError
from vflens.experiments.weights.numbers import checked_numbers, checked_shapes
from vflens.numerics.boosting.histograms import Histograms
from vflens.types import Array
from vflens.words import counted

#: Key → its axes: M nodes, n rows, m rows of known label.
_SPACES = {"spaces": "Mn", "tree": "M", "classes": "", "known": "m", "labels": "m"}

#: The same of T trees, d columns and B bins.
_SUMS = {
    "spaces": "Mn", "tree": "M", "gradient": "Tn", "hessian": "Tn", "gradient_sums": "MdB",
    "hessian_sums": "MdB",
}  # fmt: skip
_MOST = 10**6  # pairs of a node and a row: tens of seconds a column
_LARGEST = 2**53  # beyond it float64 leaves whole numbers out
_ROUNDING = 1e-4  # of sums, beside those of sizes: single precision


@dataclass(frozen=True, eq=False)
class Spaces:
    """``spaces`` bool (M, n) of nodes of ``tree`` int (M,); ``known`` rows int (m,) and their ``labels``."""

    spaces: Array
    tree: Array
    classes: int
    known: Array
    labels: Array


def read_spaces(file: Path | str, given: Mapping[str, Array]) -> Spaces:
    """The instance spaces ``given``; a refusal names them ``file``.

    Raises:
        DataError: an array is missing, unknown, or wrong.
    """
    arrays = numbers_of(file, given, _SPACES, ("spaces", "tree", "classes"))
    if ("known" in arrays) != ("labels" in arrays):
        raise DataError(f"{file} has one of 'known' and 'labels': give both, or neither")
    arrays = {"known": np.zeros(0), "labels": np.zeros(0), **arrays}
    n = checked_shapes(file, arrays, _SPACES)["n"]
    spaces, *rest = (arrays[key] for key in _SPACES)
    tree, many, known, labels = (_whole(file, key, of) for key, of in zip([*_SPACES][1:], rest, strict=True))
    classes = int(many)
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
        last = classes - 1
        raise DataError(f"'labels' of {file} has a class beyond {last}: give classes from 0 to {last}")
    nodes = _of_nodes(file, spaces)
    return Spaces(spaces=nodes, tree=tree, classes=classes, known=known, labels=labels)


def read_histograms(file: Path | str, given: Mapping[str, Array]) -> list[Histograms]:
    """The sums of each column ``given``; a refusal names them ``file``.

    Raises:
        DataError: an array is missing, unknown, or wrong.
    """
    arrays = numbers_of(file, given, _SUMS, tuple(_SUMS))
    sizes = checked_shapes(file, arrays, _SUMS)
    of_nodes, of_trees, gradient, hessian, *by_bin = (arrays[key] for key in _SUMS)
    trees, columns, bins = (sizes[axis] for axis in "TdB")
    spaces, tree = _of_nodes(file, of_nodes), _whole(file, "tree", of_trees)
    if tree.max(initial=0) >= trees:
        raise DataError(
            f"'tree' of {file} has {tree.max()} with the gradients of {counted(trees, 'tree')}: count "
            "trees from 0"
        )
    if spaces.size > _MOST:
        raise DataError(
            f"{file} has {spaces.size:,} pairs of a node and a row, more than {_MOST:,}: give fewer trees"
        )
    if bins < 2 or not columns:
        raise DataError(
            f"'gradient_sums' of {file} have {counted(bins, 'bin')} and {counted(columns, 'column')}: give "
            "at least two bins and one"
        )
    if (hessian < 0).any():
        raise DataError(f"'hessian' of {file} has a number below 0: give second derivatives of a convex loss")
    weights, sums = np.stack([gradient, hessian], axis=2)[tree], np.stack(by_bin, axis=3)
    _check_sums(file, spaces, weights, sums)
    return [Histograms(spaces, weights, sums[:, column]) for column in range(columns)]


def _check_sums(file: Path | str, spaces: Array, weights: Array, sums: Array) -> None:
    """``sums`` (M, d, B, 2) over all bins are those of the rows of each node."""
    inside = np.where(spaces[..., None], weights, 0.0)
    off = np.abs(sums.sum(axis=2) - inside.sum(axis=1)[:, None])
    wrong = np.argwhere(off > _ROUNDING * (1 + np.abs(inside).sum(axis=1)[:, None]))
    if len(wrong):
        node, column, which = wrong[0].tolist()
        key = ("gradient_sums", "hessian_sums")[which]
        raise DataError(
            f"{key!r} of {file} of node {node} and column {column} do not add up to those of its rows: give "
            "the sums of all bins, not cumulative, with one for missing values"
        )


def numbers_of(
    file: Path | str, given: Mapping[str, Array], axes: Mapping[str, str], needed: Sequence[str]
) -> dict[str, Array]:
    """The arrays ``given`` as float64; a refusal names them ``file``.

    Raises:
        DataError: one is missing, unknown, or wrong.
    """
    if unknown := sorted(given.keys() - axes.keys()):
        raise DataError(f"{file} holds {unknown[0]!r}: the arrays are {', '.join(axes)}")
    if missing := [key for key in needed if key not in given]:
        due = (" and " if len(needed) == 2 else ", ").join(needed)
        raise DataError(f"{file} lacks {missing[0]!r}: give at least {due}")
    plain = {key: a.astype(np.uint8) if a.dtype.kind == "b" else a for key, a in given.items()}
    return {key: checked_numbers(file, key, array) for key, array in plain.items()}


def _of_nodes(file: Path | str, spaces: Array) -> Array:
    """``spaces`` as bool."""
    if not np.isin(spaces, (0, 1)).all():
        raise DataError(f"'spaces' of {file} holds something else than 0 and 1: say whether a node has a row")
    if not spaces.any():
        raise DataError(f"'spaces' of {file} holds no row: give those of the nodes that were seen")
    found: Array = spaces.astype(bool)
    return found


def _whole(file: Path | str, key: str, numbers: Array) -> Array:
    if (numbers % 1).any() or numbers.min(initial=0) < 0 or numbers.max(initial=0) > _LARGEST:
        raise DataError(
            f"{key!r} of {file} holds something else than whole numbers from 0 to {_LARGEST:,}: count from 0"
        )
    found: Array = numbers.astype(np.int64)
    return found
