"""Files of the folder that the environment variable VFLENS_DATA names, verified before they are read."""

from __future__ import annotations

import csv
import gzip
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from vflens.errors import DataError
from vflens.types import Array

VARIABLE = "VFLENS_DATA"


def read(name: str, sha256: str) -> bytes:
    """The decompressed contents of the gzip file ``name``, whose stored bytes must have this ``sha256``.

    Raises:
        DataError: VFLENS_DATA is unset, the file is absent, or its checksum is another.
    """
    folder = os.environ.get(VARIABLE)
    if not folder:
        raise DataError(
            f"environment variable {VARIABLE} is not set: set it to the folder that holds {name!r}"
        )
    path = Path(folder) / name
    try:
        stored = path.read_bytes()
    except OSError as error:
        raise DataError(
            f"cannot read {str(path)!r} ({error.strerror}): put the file where {VARIABLE} points"
        ) from error
    found = hashlib.sha256(stored).hexdigest()
    if found != sha256:
        raise DataError(f"{str(path)!r} has sha256 {found}, not {sha256}: replace it by the original file")
    return gzip.decompress(stored)


def numbers(text: bytes, delimiter: str | None = None) -> Array:
    """Lines of numbers as float64 (n, columns); no ``delimiter`` means white space."""
    return np.loadtxt(text.decode().splitlines(), delimiter=delimiter, ndmin=2)


def text_columns(
    text: bytes, names: Sequence[str] | None = None, *, delimiter: str = ","
) -> dict[str, Array]:
    """Delimited lines, blank ones skipped, as one array of strings (n,) per column.

    Without ``names`` the first line holds them.
    """
    lines = filter(None, csv.reader(text.decode().splitlines(), delimiter=delimiter, skipinitialspace=True))
    header = next(lines) if names is None else names
    return {name: np.array(values) for name, values in zip(header, zip(*lines, strict=True), strict=True)}
