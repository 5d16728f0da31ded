"""A party's run copied for one command: who rebuilds a party opens its logs for writing."""

from __future__ import annotations

import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vflens.errors import ConfigError, StorageError
from vflens.services.folder import OF_A_RUN, is_held
from vflens.storage.private import owner_only


@contextmanager
def private_copy(folder: Path) -> Iterator[Path]:
    """A copy of the run in ``folder``, for this user alone, until the block ends; ``folder`` is only read.

    Raises:
        ConfigError: the party is running.
        StorageError: the run holds a link, a pipe or a device, or cannot be copied.
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
        yield Path(scratch)


def _copy(source: Path, target: Path) -> None:
    """Copy a file, or a folder of files, where there is one."""
    try:
        kind = source.lstat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(kind):
        target.mkdir()
        for inner in sorted(source.iterdir()):
            _copy(inner, target / inner.name)
    elif stat.S_ISREG(kind):
        shutil.copyfile(source, target, follow_symlinks=False)
    else:
        what = "a link, which may lead anywhere" if stat.S_ISLNK(kind) else "no regular file"
        raise StorageError(f"{source} is {what}: give a folder as its party wrote it")
