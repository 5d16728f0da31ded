"""32 random bytes that separate the noise of a party's starts; in lab mode there are none.

A new start in a folder does not know earlier releases. With the same key of noise two values could get the
noise of one step or row, and their difference would have none.
"""

from __future__ import annotations

import re
import secrets
from pathlib import Path

from vflens.errors import StorageError
from vflens.storage.private import write_private
from vflens.storage.regular import read_text


def start_nonce(folder: Path, *, lab: bool) -> str:
    """The nonce of the run in ``folder``, 64 hexadecimal digits; drawn when the run begins. "" in lab mode:
    one seed, one result.

    Raises:
        StorageError: it cannot be read or written, or the run in ``folder`` has lost it.
    """
    if lab:
        return ""
    file = folder / "nonce"
    try:
        if not file.exists() and not (folder / "state.json").exists():
            folder.mkdir(parents=True, exist_ok=True)
            write_private(file, secrets.token_hex(32))
        nonce = read_text(file)
    except (OSError, ValueError) as error:
        raise StorageError(
            f"{file}, on which the run's noise rests, cannot be read or written ({error}): use a folder that "
            "nobody changed"
        ) from error
    if not re.fullmatch("[0-9a-f]{64}", nonce):
        raise StorageError(f"{file} is not 64 hexadecimal digits: use a folder that nobody changed")
    return nonce
