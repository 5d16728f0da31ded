"""Arrays, what logs say of those of a payload, and columns scaled to [0, 1]; numerics import them without
anything else of the package.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from mmap import MADV_DONTNEED, mmap
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
T = TypeVar("T")

DIGEST_BYTES = 32
_BLOCK_BYTES = 1 << 22
_ROWS_AT_ONCE = 1 << 8


def in_unit(values: Array) -> Array:
    """Bytes as 255ths, float64 in [0, 1]; any other numbers as they are."""
    scaled: Array = values / 255.0 if values.dtype == np.uint8 else values
    return scaled


def distinct(rows: Array) -> Array:
    """The different integers of ``rows`` (n,), sorted; ``np.unique`` hashes them one by one."""
    ordered = np.sort(rows)
    found: Array = ordered[np.concatenate([np.ones(min(1, len(rows)), bool), ordered[1:] != ordered[:-1]])]
    return found


def mapped(numbers: Array) -> mmap | None:
    """The mapped file in which ``numbers`` lie, if they lie in one."""
    owner: Any = numbers
    while isinstance(owner, np.ndarray):
        owner = owner.base
    return owner if isinstance(owner, mmap) else None


def let_go(numbers: Array) -> None:
    """Keep no page of :func:`mapped` ``numbers`` in memory: the file has them."""
    if file := mapped(numbers):
        file.madvise(MADV_DONTNEED)


def row_blocks(numbers: Array) -> Iterator[Array]:
    """The rows of ``numbers``, a view of a few at a time; a mapped file then leaves them."""
    rows = max(1, _BLOCK_BYTES // max(1, numbers[:1].nbytes))
    for start in range(0, len(numbers), rows):
        yield numbers[start : start + rows]
        let_go(numbers)


@dataclass(frozen=True, eq=False)
class ScaledColumns:
    """Columns (N, d) scaled to [0, 1], which are read by rows.

    ``kept`` are float64, or uint8 that stand for 255ths: the pixels of images, an eighth of the memory. They
    may lie in a mapped file.
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
        if mapped(self.kept):
            return in_unit(self._from_file(rows))
        return in_unit(self.kept.take(rows, axis=0))  # a third of the time of [rows]

    def _from_file(self, rows: Array) -> Array:
        """The ``rows`` (n,) of a mapped file, few at a time: a row may bring pages of 2 MiB into memory."""
        parts = []
        for start in range(0, max(1, len(rows)), _ROWS_AT_ONCE):
            parts.append(self.kept.take(rows[start : start + _ROWS_AT_ONCE], axis=0))
            let_go(self.kept)
        return np.concatenate(parts)

    def mean(self, rows: Array) -> Array:
        """The mean of each column over ``rows`` int (n,), float64 (d,), without a copy of the rows."""
        chosen = np.zeros(len(self), bool)
        chosen[rows] = True
        mean: Array
        if self.shape[1] == 1 or not self.kept.flags.c_contiguous:
            mean = self.kept.mean(axis=0, where=chosen[:, None])
        else:  # NumPy adds such rows one by one, so that blocks change no bit
            start, total = 0, np.zeros((1, self.shape[1]))
            for part in row_blocks(self.kept):
                added = np.concatenate([total, part[chosen[start : start + len(part)]]])
                start, total = start + len(part), added.sum(axis=0, keepdims=True)
            mean = total[0] / np.count_nonzero(chosen)
        return mean / 255.0 if self.kept.dtype == np.uint8 else mean


class Once(Generic[T]):
    """A property that is computed once: ``functools.cached_property`` without its lock, which takes longer
    than most of what is computed here.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> T:
        found: T = self._compute(instance)
        instance.__dict__[self._name] = found  # from now on found before this descriptor
        return found


@lru_cache(maxsize=256)  # a run's arrays have few names, and few shapes
def quoted(text: str) -> str:
    """``text`` as JSON."""
    return json.dumps(text)


@dataclass(frozen=True, eq=False)
class Layout:
    """What is said of a payload's arrays beside their numbers, in its digest and in its index line.

    ``described`` has each array up to its offset, ``places`` the first byte of each, from that of the payload
    on; ``nbytes`` they have together.
    """

    described: tuple[str, ...]
    places: tuple[int, ...]
    nbytes: int
    withheld: bool
    hashed: bytes  # what the digest begins with


@lru_cache(maxsize=256)  # described anew, a payload would take as long as a small one's hash
def _layout(
    names: tuple[str, ...] | None, kinds: tuple[tuple[np.dtype[Any], tuple[int, ...]], ...]
) -> Layout:
    described = tuple(
        f'{{"name":{quoted(name)},"dtype":"{dtype.str}","shape":{list(shape)},"offset":'
        for name, (dtype, shape) in zip(("", *(names or ())), kinds, strict=True)
    )
    ends = [*accumulate((dtype.itemsize * math.prod(shape) for dtype, shape in kinds), initial=0)]
    hashed = "".join(["withheld" if names is None else "", *described])
    return Layout(
        described,
        places=tuple(ends[:-1]),
        nbytes=ends[-1],
        withheld=names is None,
        hashed=hashed.encode(),
    )


def layout_of(arrays: Sequence[Array], names: tuple[str, ...] | None) -> Layout:
    """That of ``arrays``, the rows and tensors called ``names``; None: withheld."""
    return _layout(names, tuple([(array.dtype, array.shape) for array in arrays]))


def payload_digest(arrays: Sequence[Any], layout: Layout) -> bytes:
    """SHA-256 over ``layout`` and the bytes of the C-contiguous ``arrays``: processors have instructions for
    it (docs/performance.md, small choices).
    """
    state = hashlib.sha256(layout.hashed)
    for array in arrays:
        state.update(array)
    return state.digest()


def digests(arrays: Sequence[Any], layout: Layout) -> Iterator[bytes]:
    """The digest of a payload, and the one that a log of before names instead."""
    yield payload_digest(arrays, layout)
    yield earlier_digest(arrays, layout)


def earlier_digest(arrays: Sequence[Any], layout: Layout) -> bytes:
    """The same by BLAKE2b-256: run folders have that from before digests were SHA-256."""
    state = hashlib.blake2b(layout.hashed, digest_size=DIGEST_BYTES)
    for array in arrays:
        state.update(array)
    return state.digest()


class Payload:
    """``rows`` and ``tensors`` (None: withheld), with what logs say of them."""

    rows: Array
    tensors: Mapping[str, Array] | None

    @Once
    def arrays(self) -> tuple[Array, ...]:
        """Rows and tensors, in the order in which they are logged."""
        return (self.rows, *(self.tensors or {}).values())

    @Once
    def layout(self) -> Layout:
        """Their names, dtypes and shapes."""
        return layout_of(self.arrays, None if self.tensors is None else tuple(self.tensors))

    @property
    def nbytes(self) -> int:
        """Their bytes together."""
        return self.layout.nbytes

    @Once
    def digest(self) -> bytes:
        """See :func:`payload_digest`; made once, whichever logs name it."""
        return payload_digest(self.arrays, self.layout)

    def digests(self) -> Iterator[bytes]:
        """See :func:`digests`."""
        return digests(self.arrays, self.layout)
