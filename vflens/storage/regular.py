"""Files that another party or program may have put there: only regular ones are read.

Opening a pipe waits for its other end, and a device such as ``/dev/zero`` never ends.
"""

from __future__ import annotations

import os
import stat
from errno import EINVAL
from pathlib import Path
from typing import BinaryIO, Literal


def opened(file: Path, mode: Literal["rb", "ab"] = "rb") -> BinaryIO:
    """``file``, or the file that it links to, open for reading, or for appending.

    Raises:
        OSError: it cannot be opened, or is no regular file.
    """
    stream = open(file, mode, opener=_without_waiting)  # noqa: SIM115 (the caller closes it)
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise OSError(EINVAL, "it is no regular file")
    return stream


def read_bytes(file: Path) -> bytes:
    """The bytes of ``file``; see :func:`opened`."""
    with opened(file) as stream:
        return stream.read()


def read_text(file: Path) -> str:
    """The UTF-8 text in ``file``; see :func:`opened`.

    Raises:
        UnicodeDecodeError: it is no UTF-8.
    """
    return read_bytes(file).decode()


def _without_waiting(file: str, flags: int) -> int:
    return os.open(file, flags | os.O_NONBLOCK, 0o666)
