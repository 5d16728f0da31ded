"""Files that another party or program may have put there: only regular ones are read, and no link is written.

Opening a pipe waits for its other end, and a device such as ``/dev/zero`` never ends. A link in a folder that
somebody sent may name any file of the reader's own.
"""

import hashlib
import os
import stat
import sys
from errno import EFBIG, EINVAL, ELOOP
from io import BufferedReader, FileIO
from pathlib import Path
from typing import BinaryIO, Literal

from vflens.words import counted

#: Bytes of a JSON file: as Python objects they take seven times as much. A hundred clients with images of
#: 3,072 columns take half of it in ``federation.json``.
MOST_TEXT = 1 << 26
#: Bytes of a TOML file, which takes about a second a megabyte.
MOST_TOML = 1 << 23


def opened(file: Path) -> BufferedReader:
    """``file``, or the file that it links to, open for reading.

    Raises:
        OSError: it cannot be opened, or is no regular file.
    """
    stream = open(file, "rb", opener=_without_waiting)  # noqa: SIM115 (the caller closes it)
    _check_regular(stream)
    return stream


def sha256(file: Path) -> str:
    """The SHA-256 of ``file`` as 64 hexadecimal digits.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    with opened(file) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def opened_to_write(file: Path, mode: Literal["r+b", "ab"] = "r+b") -> FileIO:
    """``file`` itself, made where it is missing, open for reading and writing from its beginning, or for
    appending; unbuffered.

    Raises:
        OSError: it cannot be opened, is a link, or is no regular file.
    """
    try:
        stream = open(file, mode, buffering=0, opener=_without_links)  # noqa: SIM115 (the caller closes it)
    except OSError as error:
        if error.errno == ELOOP:
            raise _link() from error
        raise
    _check_regular(stream)
    return stream


def make_folder(folder: Path) -> None:
    """Make ``folder`` of a log where it is missing.

    Raises:
        OSError: it cannot be made, or is a link.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if folder.is_symlink():
        raise _link()


def check_links(folder: Path) -> None:
    """Refuse a link below ``folder``, as :func:`os.walk` finds it.

    Raises:
        OSError: there is one.
    """
    for place, folders, files in os.walk(folder):
        if link := next((n for n in (*folders, *files) if Path(place, n).is_symlink()), None):
            raise OSError(ELOOP, f"{Path(place, link)} is a link, which may lead anywhere")


def read_bytes(file: Path, most: int = sys.maxsize) -> bytes:
    """The bytes of ``file``; see :func:`opened`.

    Raises:
        OSError: it cannot be read, or has more than ``most`` bytes: a sparse file takes none of its disk.
    """
    with opened(file) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > most:
            raise OSError(EFBIG, f"it has {counted(size, 'byte', ',')}, more than {most:,}")
        return stream.read()


def read_text(file: Path, most: int = MOST_TEXT) -> str:
    """The UTF-8 text in ``file``; see :func:`read_bytes`.

    Raises:
        UnicodeDecodeError: it is no UTF-8.
    """
    return read_bytes(file, most).decode()


def _without_waiting(file: str, flags: int) -> int:
    return os.open(file, flags | os.O_NONBLOCK)


def _without_links(file: str, flags: int) -> int:
    return os.open(file, flags | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CREAT, 0o666)


def _check_regular(stream: BinaryIO | FileIO) -> None:
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise OSError(EINVAL, "it is no regular file")


def _link() -> OSError:
    """What refuses to write through a link."""
    return OSError(ELOOP, "it is a link, which may lead anywhere")
