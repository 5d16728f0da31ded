"""How a CSV file is written: its encoding, from all of its bytes, and its delimiter, from its first lines."""

from __future__ import annotations

import codecs
import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from vflens.tables.cells import SUFFIXES, suffix
from vflens.tables.exact_numbers import reading
from vflens.tables.written.header import holds_cells

_BLOCK, _HEAD = 1 << 20, 1 << 16
_LINES = 200
_DELIMITERS = ",;\t| "


def form_of(path: Path) -> dict[str, Any]:
    """``encoding`` and ``delimiter`` of the table in ``path``, where they are not UTF-8 and a comma, and
    ``header``, where it has none.

    Raises:
        DataError: it cannot be read.
    """
    if suffix(path) == ".parquet":
        return {}
    with reading():
        head = next(_blocks(path), b"")[:_HEAD]
        wide = head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) and head[2:4] != b"\0\0"  # UTF-32
        encoding = "utf-16" if wide else _encoding(path)
    lines = _lines(head.decode(encoding, "replace").removeprefix("\ufeff"), len(head))
    delimiter = _delimiter(lines)
    first, *rows = list(csv.reader(lines, delimiter=delimiter)) or [[]]
    found = {"encoding": encoding, "delimiter": delimiter, "header": not holds_cells(first, rows)}
    return {field: value for field, value in found.items() if value not in ("utf-8", ",", True)}


def _blocks(path: Path) -> Iterator[bytes]:
    import pyarrow as pa

    with pa.input_stream(str(path), compression=SUFFIXES[suffix(path)]) as stream:
        while block := stream.read(_BLOCK):
            yield block


def _encoding(path: Path) -> str:
    """The first of the usual ones that reads every byte; latin-1 reads all."""
    for name in ("utf-8", "cp1252"):
        decoder = codecs.getincrementaldecoder(name)()
        try:
            for block in _blocks(path):
                if decoder.getstate()[0] or not block.isascii():  # which is faster to see
                    decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            continue
        return name
    return "iso8859-1"


def _lines(head: str, read: int) -> list[str]:
    """The whole ones among the first, of so many bytes."""
    lines = head.splitlines()
    return lines[: -1 if len(lines) > 2 and read >= _HEAD // 4 else None][:_LINES]


def _delimiter(lines: Sequence[str]) -> str:
    """What cuts most lines into as many cells as the header, or one more as R writes them; else a comma."""
    scores = {}
    for mark in _DELIMITERS:
        widths = [len(row) for row in csv.reader(lines, delimiter=mark) if row]
        ((width, count),) = Counter(widths[1:]).most_common(1) or [(0, 0)]
        if width > 1 and widths[0] in (width, width - 1):
            scores[mark] = (round(count / len(widths), 2), widths[0] > 1, width)
    return max(scores, key=lambda mark: scores[mark], default=",")
