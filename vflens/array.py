"""Arrays, described and hashed as logs name them, and columns scaled to [0, 1]; numerics import them without
anything else of the package.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]

DIGEST_BYTES = 32


@lru_cache(maxsize=256)  # a run's arrays have few names, and few shapes
def quoted(text: str) -> str:
    """``text`` as JSON."""
    return json.dumps(text)


@lru_cache(maxsize=256)
def description(name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> str:
    """An array in an index line, up to its offset."""
    return f'{{"name":{quoted(name)},"dtype":"{dtype.str}","shape":{list(shape)},"offset":'


def contents_digest(rows: Array, tensors: Mapping[str, Array] | None) -> bytes:
    """BLAKE2b-256 over ``rows`` and ``tensors``, their names, dtypes and shapes."""
    described = "withheld" if tensors is None else ""
    arrays = {"": rows, **(tensors or {})}
    for name, array in arrays.items():
        described += description(name, array.dtype, array.shape)
    state = hashlib.blake2b(described.encode(), digest_size=DIGEST_BYTES)
    for array in arrays.values():
        state.update(array.data)
    return state.digest()


def in_unit(values: Array) -> Array:
    """Bytes as 255ths, float64 in [0, 1]; any other numbers as they are."""
    scaled: Array = values / 255.0 if values.dtype == np.uint8 else values
    return scaled


@dataclass(frozen=True, eq=False)
class ScaledColumns:
    """Columns (N, d) scaled to [0, 1], which are read by rows.

    ``kept`` are float64, or uint8 that stand for 255ths: the pixels of images, an eighth of the memory.
    ``units`` (d,) is what 1 stands for in each column's own unit; None if nobody knows, or for pixels.
    """

    kept: Array
    units: Array | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """N and d."""
        rows, columns = self.kept.shape
        return rows, columns

    def __len__(self) -> int:
        return len(self.kept)

    def __getitem__(self, rows: Array | slice) -> Array:
        """The ``rows``, positions or a slice, as float64 (n, d); ``[:]`` are all of them."""
        if isinstance(rows, slice) or not self.kept.flags.c_contiguous:  # of such columns ``take`` copies all
            return in_unit(self.kept[rows])
        return in_unit(self.kept.take(rows, axis=0))  # a third of the time of [rows]

    def mean(self, rows: Array) -> Array:
        """Of each column over ``rows`` int (n,), float64 (d,), without a copy of the rows."""
        chosen = np.zeros((len(self), 1), bool)
        chosen[rows] = True
        mean: Array = self.kept.mean(axis=0, where=chosen)
        return mean / 255.0 if self.kept.dtype == np.uint8 else mean
