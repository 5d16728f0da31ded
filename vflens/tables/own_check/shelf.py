"""Numbers of many columns in a file without a name, so that memory holds those of one column at a time."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import numpy as np

from vflens.errors import StorageError
from vflens.storage.json_file import in_words
from vflens.types import Array


class Shelf:
    """Numbers, float64 (n,), by the name of their column."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._places = file, defaultdict[str, list[tuple[int, int]]](list)

    def put(self, name: str, numbers: Array) -> None:
        """Keep the next ``numbers`` of ``name``."""
        self._places[name].append((self._file.tell(), self._file.write(numbers.tobytes())))

    def take(self, name: str) -> Array:
        """All numbers of ``name``, in their order."""
        parts = [np.zeros(0)]
        for place, size in self._places[name]:
            self._file.seek(place)
            parts.append(np.frombuffer(self._file.read(size)))
        return np.concatenate(parts)


@contextmanager
def a_shelf() -> Iterator[Shelf]:
    """An empty one, whose file goes at the end. A StorageError: there is no space for it."""
    try:
        with tempfile.TemporaryFile() as file:
            yield Shelf(file)
    except OSError as error:
        raise StorageError(
            f"the folder of temporary files keeps no column ({in_words(error)}): free space there, or set "
            "TMPDIR to a folder with more"
        ) from error
