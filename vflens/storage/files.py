"""Files written whole or not at all, or without a name; named arrays in an npz file, read without pickle."""

import math
import os
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import SEEK_END
from mmap import mmap
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any, BinaryIO
from zipfile import BadZipFile, ZipFile, ZipInfo

import numpy as np
from numpy.lib import format as npy

from vflens.errors import StorageError
from vflens.failpoints import fail_point
from vflens.storage.durable import sync, sync_name
from vflens.storage.json_file import in_words
from vflens.storage.regular import opened
from vflens.types import Array
from vflens.words import counted

#: Errors of a damaged archive. RuntimeError: foreign compression or encryption, or too deep nesting.
#: TokenError, SyntaxError, OverflowError: a header that is no Python, or a shape beyond any memory.
UNREADABLE = (
    OSError, ValueError, EOFError, TypeError, RuntimeError, MemoryError, OverflowError,
    SyntaxError, TokenError,
    BadZipFile, zlib.error,
)  # fmt: skip
#: A table of more bytes lies in a mapped file.
MAPPED_BYTES = 1 << 30
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def repeats(rows: Array) -> bool:
    """Whether a row is named twice in ``rows`` int32 (n,)."""
    if (rows[1:] > rows[:-1]).all():  # as rows are mostly asked for; sorting takes longer
        return False
    ordered = np.sort(rows)
    return bool((ordered[1:] == ordered[:-1]).any())


@contextmanager
def unnamed(what: str, size: int = 0) -> Iterator[IO[bytes]]:
    """A temporary file of ``size`` bytes for ``what``, which goes with the last that holds it.

    Raises:
        StorageError: there is no space for it.
    """
    try:
        with tempfile.TemporaryFile() as file:
            if size:  # without its space, a mapped file ends the process where the disk is full
                os.posix_fallocate(file.fileno(), 0, size)
            yield file
    except OSError as error:
        raise StorageError(
            f"{tempfile.tempdir or 'TMPDIR'}, the folder of temporary files, keeps no {what} "
            f"({in_words(error)}): free space there, or set TMPDIR to a folder with more"
        ) from error


def table_room(shape: tuple[int, int], dtype: type[np.generic]) -> Array:
    """An array for the numbers of a table, whatever they are now: of more than :data:`MAPPED_BYTES` in a
    temporary file.

    Raises:
        StorageError: see :func:`unnamed`.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size <= MAPPED_BYTES:
        return np.empty(shape, dtype)
    with unnamed(f"table of {size / 2**20:,.0f} MiB", size) as file:
        return np.ndarray(shape, dtype, mmap(file.fileno(), size))


@contextmanager
def whole(file: Path, mode: int = 0o666, *, new: bool = False) -> Iterator[BinaryIO]:
    """A stream whose bytes are ``file`` once the block has ended well; else ``file`` stays as it was.

    Args:
        file: its folder is made where it is missing.
        mode: permissions, reduced by the umask; until then only the owner can read the bytes.
        new: a ``file`` that came meanwhile stays: of two that write it at the same time one is refused.

    Raises:
        OSError: it cannot be written; nothing is left beside it.
        FileExistsError: ``new``, and ``file`` is there.
    """
    fail_point(file.name, "begun")
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.parent / f"{file.name}.{os.getpid()}.tmp"
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as out:
            yield out
            out.flush()
            sync(out.fileno(), file)
        fail_point(file.name, "written")
        if new:
            file.hardlink_to(temporary)
        else:
            temporary.replace(file)
        sync_name(file)
    finally:
        temporary.unlink(missing_ok=True)
    fail_point(file.name, "replaced")


def write_whole(file: Path, data: bytes, mode: int = 0o666, *, remedy: str = "another folder") -> None:
    """Write ``data`` to ``file``, whole or not at all; see :func:`whole`.

    Raises:
        StorageError: it cannot be written; the sentence advises to choose ``remedy``.
    """
    with _storage(file, remedy), whole(file, mode) as out:
        out.write(data)


def save_arrays(file: Path, arrays: Mapping[str, Array]) -> None:
    """Write ``arrays`` to ``file`` as npz, whole or not at all.

    Raises:
        StorageError: it cannot be written; an earlier ``file`` stays as it was.
    """
    named: dict[str, Any] = dict(arrays)
    with _storage(file, "another folder"), whole(file) as out:
        np.savez(out, **named)


@contextmanager
def _storage(file: Path, remedy: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{file} cannot be written ({error.strerror or error}): free space or choose {remedy}"
        ) from error


def load_arrays(file: Path, *, remedy: str = "give the folder of a whole run") -> dict[str, Array]:
    """See :func:`read_arrays`; ``remedy`` ends the sentence that refuses ``file``.

    Raises:
        StorageError: the file is absent, damaged, compressed, or holds pickled objects.
    """
    try:
        return read_arrays(file)
    except UNREADABLE as error:
        raise StorageError(f"{file} holds no readable arrays ({in_words(error)}): {remedy}") from error


def read_arrays(file: Path) -> dict[str, Array]:
    """The arrays in ``file``, which take at most as much memory as the file has bytes, by any writer.

    Raises:
        one of UNREADABLE: it is absent, damaged, compressed, or holds pickled objects.
    """
    with opened(file) as stream:
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
                f"{counted(packed, 'byte')} claim to hold {unpacked}: write it without compression, with "
                "numpy.savez"
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
            f"{member.filename} of shape {shape} {dtype} has {counted(member.file_size, 'byte')}: expected "
            f"{due}"
        )
