"""Numbers of many columns in a file without a name, so that memory holds those of one column at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, TypeAlias

import numpy as np

from vflens.storage.files import unnamed
from vflens.types import Array

if TYPE_CHECKING:
    import pyarrow as pa

PART_ROWS, _PART_BYTES = 1 << 14, 1 << 20  # of a column, that are taken up together
Chunks: TypeAlias = "Iterable[tuple[int, str, pa.Array]]"  # see RawTable.chunks


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
    with unnamed("column") as file:
        yield Shelf(file)


def joined(chunks: Chunks) -> Iterator[tuple[int, str, pa.Array]]:
    """The same in longer ones: each costs as much as thousands of cells."""
    import pyarrow as pa

    waiting, held = dict[str, tuple[int, list[pa.Array]]](), defaultdict[str, int](int)

    def ready(name: str) -> tuple[int, str, pa.Array]:
        start, parts = waiting.pop(name)
        held[name] = 0
        if not waiting:  # the system's allocator keeps holes else
            pa.default_memory_pool().release_unused()
        return start, name, pa.concat_arrays(parts)

    for first, name, cells in chunks:
        if name in waiting and waiting[name][1][0].type != cells.type:  # texts, from here on
            yield ready(name)
        start, parts = waiting.setdefault(name, (first, []))
        parts.append(cells)
        held[name] += cells.nbytes
        if first + len(cells) - start >= PART_ROWS or held[name] >= _PART_BYTES:
            yield ready(name)
    for name in [*waiting]:
        yield ready(name)
