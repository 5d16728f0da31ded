"""What is for its owner alone: files of mode 600 in folders of mode 700, whatever the umask."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_OTHERS = 0o077  # every permission of the group and of others


@contextmanager
def owner_only() -> Iterator[None]:
    """Files and folders that this process makes meanwhile, in any thread, are for its user alone."""
    before = os.umask(_OTHERS)
    try:
        yield
    finally:
        os.umask(before)


def opened(path: Path, mode: int) -> str:
    """Who else can open ``path`` and the command that ends it, which sets ``mode``; "" where nobody else can.

    Raises:
        OSError: there is no ``path``.
    """
    found = path.stat().st_mode & 0o777
    if not found & _OTHERS:
        return ""
    return f"is open to other users of this machine (mode {found:o}): chmod {mode:o} {shlex.quote(str(path))}"


def write_private(file: Path, text: str) -> None:
    """Write ``file``, whole or not at all, readable by its owner alone from the start.

    Raises:
        OSError: it cannot be written; what was there before stays.
    """
    temporary = file.with_name(f"{file.name}.new")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as out:
            out.write(text)
        temporary.replace(file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
