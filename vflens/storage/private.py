"""Files of mode 600 in folders of mode 700, for their owner alone, under every umask."""

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vflens.storage.files import whole

_OTHERS = 0o077  # every permission of the group and of others


@contextmanager
def owner_only() -> Iterator[None]:
    """Inside, all files and folders that this process makes, in any thread, are for its user alone."""
    before = os.umask(_OTHERS)
    try:
        yield
    finally:
        os.umask(before)


def exposure(path: Path, mode: int) -> str:
    """A sentence if other users can open ``path``, with the command that sets ``mode``; "" if none can.

    Raises:
        OSError: there is no ``path``.
    """
    found = path.stat().st_mode & 0o777
    if not found & _OTHERS:
        return ""
    return f"is open to other users of this machine (mode {found:o}): chmod {mode:o} {shlex.quote(str(path))}"


def write_private(file: Path, text: str, *, new: bool = False) -> None:
    """Write ``file`` whole or not at all; only its owner can ever read it; ``new`` as for
    :func:`vflens.storage.files.whole`.

    Raises:
        OSError: it cannot be written; an earlier ``file`` stays.
    """
    with whole(file, 0o600, new=new) as out:
        out.write(text.encode())
