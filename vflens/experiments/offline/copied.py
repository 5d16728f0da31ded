"""A party's run copied for one command: who rebuilds a party opens its logs for writing."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENOSPC
from pathlib import Path

from vflens.errors import ConfigError, StorageError, VflensError
from vflens.services.folder import OF_A_RUN, is_held
from vflens.storage.private import owner_only
from vflens.words import counted

_DEEPEST = 4  # folders inside one another; a party writes two
_SMALL, _MOST_PACKED = 1 << 20, 100  # bytes; how many times smaller a disk may pack a file


@contextmanager
def private_copy(folder: Path) -> Iterator[Path]:
    """A copy of the run in ``folder``, for this user alone, until the block ends; ``folder`` is only read.

    An error of the block names ``folder`` in the copy's place.

    Raises:
        ConfigError: the party is running.
        StorageError: the run holds a link, a pipe, a device, a file of holes or folders inside folders, or
            cannot be copied.
    """
    if is_held(folder):
        raise ConfigError(f"run folder {folder} is in use by its party's process: stop it, or attack its end")
    with owner_only(), tempfile.TemporaryDirectory(prefix="vflens-attack-") as scratch:
        try:
            for name in OF_A_RUN:
                _copy(folder / name, Path(scratch) / name)
        except OSError as error:
            raise StorageError(
                f"{folder} cannot be copied to {tempfile.gettempdir()} ({error.strerror or error}): free "
                "space, or set TMPDIR to a folder with more"
            ) from error
        try:
            yield Path(scratch)
        except VflensError as error:
            error.args = (str(error).replace(scratch, str(folder)),)
            raise


def _copy(source: Path, target: Path, depth: int = _DEEPEST) -> None:
    """Copy a file, or a folder of files, where there is one."""
    try:
        found = source.lstat()
    except FileNotFoundError:
        return
    if stat.S_ISDIR(found.st_mode) and depth:
        target.mkdir()
        for inner in sorted(source.iterdir()):
            _copy(inner, target / inner.name, depth - 1)
    elif what := _wrong(found):
        raise StorageError(f"{source} is {what}: give a folder as its party wrote it")
    elif found.st_size > shutil.disk_usage(target.parent).free:
        raise OSError(ENOSPC, os.strerror(ENOSPC))
    else:
        shutil.copyfile(source, target, follow_symlinks=False)


def _wrong(found: os.stat_result) -> str:
    """What else than a party's file ``found`` is, "" for one."""
    if stat.S_ISDIR(found.st_mode):
        return f"a folder in more than {_DEEPEST} others"
    if stat.S_ISLNK(found.st_mode):
        return "a link, which may lead anywhere"
    if not stat.S_ISREG(found.st_mode):
        return "no regular file"
    holes = found.st_size > _SMALL and found.st_blocks * 512 < found.st_size // _MOST_PACKED
    return (
        f"a file of holes, {counted(found.st_size, 'byte', ',')} whose copy would fill a disk"
        if holes
        else ""
    )
