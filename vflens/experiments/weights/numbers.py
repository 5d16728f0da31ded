"""Arrays of a foreign file, checked."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from vflens.attacks import LARGEST
from vflens.errors import DataError
from vflens.types import Array


def checked_numbers(file: Path | str, key: str, array: Any, axes: int | None = None) -> Array:
    """``array``, called ``key`` in ``file``, as float64 of so many ``axes`` (None: any).

    Raises:
        DataError: it holds something else than finite numbers up to 1e50, or has other axes.
    """
    if array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        raise DataError(f"{key!r} of {file} holds something else than finite numbers: give float64")
    if np.abs(array.astype(np.float64)).max(initial=0.0) > LARGEST:
        raise DataError(f"{key!r} of {file} holds numbers beyond {LARGEST:g}: give other units")
    if axes is not None and array.ndim != axes:
        raise DataError(f"{key!r} of {file} has shape {array.shape}: give an array of {axes} axes")
    found: Array = array.astype(np.float64)
    return found


def checked_shapes(file: Path | str, arrays: Mapping[str, Array], axes: Mapping[str, str]) -> dict[str, int]:
    """The length of each axis of ``arrays``, whose ``axes`` are letters, or a digit for a fixed length.

    Raises:
        DataError: an array does not fit its axes, or another array.
    """
    sizes = {a: int(a) for letters in axes.values() for a in letters if a.isdecimal()}
    for key, letters in axes.items():
        if key in arrays:
            shape = arrays[key].shape
            due = tuple(sizes.setdefault(a, n) for a, n in zip(letters, shape, strict=False))
            if len(shape) != len(letters) or shape != due:
                named = (f"{a} = {sizes[a]}" if a in sizes and not a.isdecimal() else a for a in letters)
                raise DataError(f"{key!r} of {file} has shape {shape}: give ({', '.join(named)})")
    return sizes
