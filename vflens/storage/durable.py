"""Writes that survive a loss of power: a party with ``limits.durable = "machine"`` syncs each to its disk.

A message leaves a party after its writes. So what another party saw of it is then on its disk.
"""

import os
from contextlib import suppress
from errno import ENOSPC
from functools import lru_cache
from io import FileIO
from pathlib import Path

from vflens.failpoints import fail_point

_folders: set[Path] = set()  # of the parties that sync


def keep(folder: Path, *, machine: bool) -> None:
    """From now on sync what is written below a party's ``folder``; without ``machine`` do not."""
    (_folders.add if machine else _folders.discard)(folder)
    _is_kept.cache_clear()
    if machine:
        with suppress(OSError):  # another user's folder, which this one may not read
            _sync_folder(folder.parent)


def sync(descriptor: int, path: Path) -> None:
    """Sync what was written to the file open at ``descriptor``, if ``path``, its own or its log's, is kept.

    Raises:
        OSError: the disk failed.
    """
    if _is_kept(path):
        os.fdatasync(descriptor)


def append(out: FileIO, data: bytes, folder: Path, name: str) -> None:
    """Write ``data`` whole at the end of the file ``name`` of a log in ``folder``, open at ``out``; sync it.

    Raises:
        OSError: the disk is full, or failed.
    """
    fail_point(name, "begun")
    if out.write(data) < len(data):
        raise OSError(ENOSPC, os.strerror(ENOSPC))
    sync(out.fileno(), folder)
    fail_point(name, "written")


def sync_name(file: Path) -> None:
    """The same for the name of ``file``, which is new in its folder.

    Raises:
        OSError: the disk failed.
    """
    if _is_kept(file):
        for folder in file.parents:  # each may be new too
            _sync_folder(folder)
            if folder in _folders:
                return


@lru_cache  # a log asks for its own path with each record
def _is_kept(path: Path) -> bool:
    return bool(_folders) and not _folders.isdisjoint(path.parents)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
