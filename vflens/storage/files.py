"""Arrays of rows, npz files and texts: written whole or not at all, read without pickle."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from io import SEEK_END
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any, BinaryIO
from zipfile import BadZipFile, ZipFile, ZipInfo

import numpy as np
from numpy.lib import format as npy

from vflens.errors import StorageError
from vflens.types import Array

#: Errors of a damaged archive. RuntimeError: foreign compression or encryption, or too deep nesting.
#: TokenError, SyntaxError, OverflowError: a header that is no Python, or a shape beyond any memory.
UNREADABLE = (
    OSError, ValueError, EOFError, TypeError, RuntimeError, MemoryError, OverflowError,
    SyntaxError, TokenError,
    BadZipFile, zlib.error,
)  # fmt: skip
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def repeats(rows: Array) -> bool:
    """Whether a row is named twice in ``rows`` int32 (n,)."""
    if len(rows) < 2:
        return False
    ordered = np.sort(rows)
    return bool((ordered[1:] == ordered[:-1]).any())


def save_arrays(file: Path, arrays: Mapping[str, Array]) -> None:
    """Write ``arrays`` to ``file``, through a temporary file beside it.

    Raises:
        StorageError: it cannot be written; an earlier ``file`` stays.
    """
    named: dict[str, Any] = dict(arrays)

    def write(temporary: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as out:
            np.savez(out, **named)

    _through(file, write, "another folder")


def write_whole(file: Path, text: str) -> None:
    """Write ``text`` to ``file``, through a temporary file beside it.

    Raises:
        StorageError: it cannot be written; an earlier ``file`` stays.
    """
    _through(file, lambda temporary: temporary.write_text(text, encoding="utf-8"), "another `out`")


def _through(file: Path, write: Callable[[Path], object], remedy: str) -> None:
    """Write ``file`` through a temporary one beside it, which is removed if ``write`` fails."""
    temporary = file.parent / f"{file.name}.tmp"
    try:
        write(temporary)
        temporary.replace(file)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise StorageError(
            f"{file} cannot be written ({error.strerror}): free space or choose {remedy}"
        ) from error


def load_arrays(file: Path, *, remedy: str = "give the folder of a whole run") -> dict[str, Array]:
    """See :func:`read_arrays`; ``remedy`` ends the sentence that refuses ``file``.

    Raises:
        StorageError: the file is absent, damaged, compressed, or holds pickled objects.
    """
    try:
        return read_arrays(file)
    except UNREADABLE as error:
        raise StorageError(f"{file} holds no readable arrays ({error}): {remedy}") from error


def read_arrays(file: Path) -> dict[str, Array]:
    """The arrays in ``file``, which take at most as much memory as the file has bytes, by any writer.

    Raises:
        one of UNREADABLE: it is absent, damaged, compressed, or holds pickled objects.
    """
    with file.open("rb") as stream:
        _check_sizes(stream)
        with np.load(stream, allow_pickle=False) as saved:
            return dict(saved)


def _check_sizes(stream: BinaryIO) -> None:
    """Refuse an archive whose directory or headers announce more than it holds, before any read into memory.

    Raises:
        ValueError: names the entry; BadZipFile: it is no archive.
    """
    with ZipFile(stream) as archive:
        members = archive.infolist()
        unpacked, packed = sum(m.file_size for m in members), stream.seek(0, SEEK_END)
        if unpacked > packed:
            raise ValueError(
                f"{packed} bytes are said to hold {unpacked}: write it without compression, with numpy.savez"
            )
        for member in members:
            with archive.open(member) as data:
                _check_header(data, member)
    stream.seek(0)


def _check_header(data: IO[bytes], member: ZipInfo) -> None:
    version = npy.read_magic(data)
    if version not in _HEADERS:
        raise ValueError(f"{member.filename} is no plain array")
    try:
        shape, _, dtype = _HEADERS[version](data)
    except ValueError as error:  # its message advises to trust the file
        raise ValueError(f"the header of {member.filename} cannot be read") from error
    if dtype.hasobject:
        raise ValueError(f"{member.filename} holds Python objects, not numbers")
    due = data.tell() + math.prod(shape) * max(1, dtype.itemsize)
    if min(shape, default=0) < 0 or due != member.file_size:
        raise ValueError(
            f"{member.filename} of shape {shape} {dtype} has {member.file_size} bytes: {due} are due"
        )
