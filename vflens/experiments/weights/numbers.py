"""Arrays of a foreign file, checked."""

from pathlib import Path
from typing import Any

import numpy as np

from vflens.attacks import LARGEST
from vflens.errors import DataError
from vflens.types import Array


def checked_numbers(file: Path, key: str, array: Any, axes: int | None = None) -> Array:
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
