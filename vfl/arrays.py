"""Named arrays in an npz file, and texts: written whole or not at all, read without pickle."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from vfl.errors import StorageError
from vfl.types import Array

#: What a damaged archive raises. TypeError: one bare array. RuntimeError: compressed or encrypted in a way that nobody here writes.
UNREADABLE = (OSError, ValueError, EOFError, TypeError, RuntimeError, BadZipFile, zlib.error)


def save_arrays(file: Path, arrays: Mapping[str, Array]) -> None:
    """Write ``arrays`` to ``file``, through a temporary file beside it.

    Raises:
        StorageError: it cannot be written; an earlier ``file`` stays as it was.
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
        StorageError: it cannot be written; an earlier ``file`` stays as it was.
    """
    _through(file, lambda temporary: temporary.write_text(text, encoding="utf-8"), "another `out`")


def _through(file: Path, write: Callable[[Path], object], remedy: str) -> None:
    """``file`` from what ``write`` leaves in a temporary one beside it; nothing of that stays where it fails."""
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


def load_arrays(file: Path) -> dict[str, Array]:
    """The arrays in ``file``.

    Raises:
        StorageError: it is absent, damaged, or holds pickled objects.
    """
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as saved:
            return dict(saved)
    except UNREADABLE as error:
        raise StorageError(
            f"{file} holds no readable arrays ({error}): give the folder of a whole run"
        ) from error
