"""Files of the folder in the environment variable VFLENS_DATA, verified before use."""

from __future__ import annotations

import csv
import gzip
import hashlib
import os
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from pathlib import Path
from typing import TypeVar

import numpy as np

from vflens.errors import DataError
from vflens.plugins.dataset import Dataset
from vflens.tables.table import Table
from vflens.types import Array

VARIABLE = "VFLENS_DATA"
_Of = TypeVar("_Of", bound=Dataset)


def kept(load: Callable[[_Of], Table]) -> Callable[[_Of], Table]:
    """``load``, whose last table this process keeps, read-only, for the next run of a sweep.

    Only for files with checksums: the same folder then gives the same table.
    """

    @lru_cache(maxsize=1)
    def loaded(dataset: _Of, folder: str | None) -> Table:
        table = load(dataset)
        for part in (table.ids, table.features, table.labels, table.split):
            if part is not None:
                part.flags.writeable = False
        return table

    @wraps(load)
    def load_once(dataset: _Of) -> Table:
        return loaded(dataset, os.environ.get(VARIABLE))

    return load_once


def place(name: str) -> Path:
    """Where the file or folder ``name`` is looked for.

    Raises:
        DataError: VFLENS_DATA is unset.
    """
    folder = os.environ.get(VARIABLE)
    if not folder:
        raise DataError(
            f"environment variable {VARIABLE} is not set: set it to the folder that holds {name!r}"
        )
    return Path(folder) / name


def absent(path: Path, error: OSError) -> DataError:
    """The refusal of a file at ``path`` that cannot be read."""
    return DataError(f"cannot read {str(path)!r} ({error.strerror}): put the file where {VARIABLE} points")


def read(name: str, sha256: str) -> bytes:
    """The decompressed contents of the gzip file ``name``; see :func:`stored`."""
    return gzip.decompress(stored(name, sha256))


def stored(name: str, sha256: str) -> bytes:
    """The bytes of the file ``name``, if they have this ``sha256``.

    Raises:
        DataError: VFLENS_DATA is unset, the file is absent, or its checksum is another.
    """
    path = place(name)
    try:
        stored = path.read_bytes()
    except OSError as error:
        raise absent(path, error) from error
    found = hashlib.sha256(stored).hexdigest()
    if found != sha256:
        raise DataError(f"{str(path)!r} has sha256 {found}, not {sha256}: replace it by the original file")
    return stored


def numbers(text: bytes, delimiter: str | None = None) -> Array:
    """Lines of numbers as float64 (n, columns); without a ``delimiter`` white space separates them."""
    return np.loadtxt(text.decode().splitlines(), delimiter=delimiter, ndmin=2)


def text_columns(
    text: bytes, names: Sequence[str] | None = None, *, delimiter: str = ","
) -> dict[str, Array]:
    """Delimited lines, without blank ones, as one array of strings (n,) per column.

    The first line holds the names unless ``names`` does.
    """
    lines = filter(None, csv.reader(text.decode().splitlines(), delimiter=delimiter, skipinitialspace=True))
    header = next(lines) if names is None else names
    return {name: np.array(values) for name, values in zip(header, zip(*lines, strict=True), strict=True)}
