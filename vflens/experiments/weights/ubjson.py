"""Universal Binary JSON (ubjson.org, draft 12), as XGBoost writes it: read strictly, within bounds.

Numbers are big-endian. A container holds values up to its end, or after ``#`` as many as it announces, which
after ``$`` have one type and stand one behind the other. No value is made before its bytes are there, so the
memory is a small multiple of the file. The number of values is bounded too: each one takes time here.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from vflens.types import Array
from vflens.words import counted

_NUMBERS = {"i": "i1", "U": "u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}
_WORDS: dict[str, bool | None] = {"T": True, "F": False, "Z": None}
_DEEPEST = 32  # XGBoost's models have 6 containers inside each other
_MOST = 500_000  # values and lengths, about a second; one of XGBoost's trees has about 100


def parse(data: bytes) -> Any:
    """The value that ``data`` is: dict, list, array of one type, str, number, bool or None.

    Raises:
        ValueError: it is no UBJSON, deeper than 32 containers, has bytes behind its end, or more than 500,000
            values and lengths outside arrays of one type.
    """
    reader = _Reader(data)
    value = reader.value(reader.marker(), 0)
    if reader.at != len(data):
        raise ValueError(f"bytes follow its end at byte {reader.at}")
    return value


class _Reader:
    """``data`` from byte ``at`` on."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.left = data, 0, _MOST

    def marker(self) -> str:
        """The next marker that means something."""
        while self.left > 0:
            self.left -= 1
            if (found := self.take(1)) != b"N":
                return found.decode("latin-1")
        raise ValueError(
            f"it holds more than {_MOST:,} values and lengths: save a model with so many as .json"
        )

    def take(self, count: int) -> bytes:
        """The next ``count`` bytes."""
        if not 0 <= count <= len(self.data) - self.at:
            raise ValueError(
                f"byte {self.at} announces {counted(count, 'byte')} where {len(self.data) - self.at} are left"
            )
        self.at += count
        return self.data[self.at - count : self.at]

    def value(self, marker: str, depth: int) -> Any:
        """The value of type ``marker``."""
        if marker in _NUMBERS:
            return self.numbers(marker, 1)[0].item()
        if marker in _WORDS:
            return _WORDS[marker]
        if marker == "S":
            return self.take(self.count()).decode("utf-8")
        if marker in "[{":
            if depth == _DEEPEST:
                raise ValueError(f"more than {_DEEPEST} containers stand inside each other")
            return self.array(depth + 1) if marker == "[" else dict(self.pairs(depth + 1))
        raise ValueError(f"byte {self.at - 1} has the unknown marker {marker!r}")

    def numbers(self, marker: str, count: int) -> Array:
        """So many numbers of type ``marker`` (count,), in the machine's byte order."""
        dtype = np.dtype(_NUMBERS[marker])
        found: Array = np.frombuffer(self.take(count * dtype.itemsize), dtype)
        return found.astype(dtype.newbyteorder("="))

    def count(self) -> int:
        """A number of values or bytes."""
        marker = self.marker()
        if marker not in "iUIlL":
            raise ValueError(f"byte {self.at - 1} has {marker!r} where a length is due")
        return int(self.numbers(marker, 1)[0])

    def array(self, depth: int) -> Any:
        """The values of an array."""
        kind, count = self.header()
        if kind in _NUMBERS and count is not None:
            return self.numbers(kind, count)
        if kind:
            raise ValueError(f"byte {self.at} begins an array of type {kind!r}: only numbers are packed")
        return [self.value(marker, depth) for marker in self.markers("]", count)]

    def pairs(self, depth: int) -> Iterator[tuple[str, Any]]:
        """Names and values of an object."""
        kind, count = self.header()
        if kind:
            raise ValueError(f"byte {self.at} begins an object of one type, which XGBoost does not write")
        while count is None or count > 0:
            if count is None and self.data[self.at : self.at + 1] == b"}":
                self.at += 1
                return
            name = self.take(self.count()).decode("utf-8")
            yield name, self.value(self.marker(), depth)
            count = None if count is None else count - 1

    def header(self) -> tuple[str, int | None]:
        """A container's type and number of values, "" and None where it announces none."""
        kind, count = "", None
        if self.data[self.at : self.at + 1] == b"$":
            self.at += 1
            kind = self.marker()
        if self.data[self.at : self.at + 1] == b"#":
            self.at += 1
            count = self.count()
            if count < 0:
                raise ValueError(f"byte {self.at} announces {counted(count, 'value')}")
        elif kind:
            raise ValueError(f"byte {self.at} has no number of values of type {kind!r}")
        return kind, count

    def markers(self, end: str, count: int | None) -> Iterator[str]:
        """The marker of each of ``count`` values, or of those up to ``end``."""
        while count is None or count > 0:
            marker = self.marker()
            if count is None and marker == end:
                return
            yield marker
            count = None if count is None else count - 1
