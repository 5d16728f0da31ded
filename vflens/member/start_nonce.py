"""32 random bytes that separate the noise of a party's starts, in lab mode none; and 32 that tell two runs
of one name apart.

A new start in a folder does not know earlier releases. With the same key of noise two values could get the
noise of one step or row, and their difference would have none.
"""

import re
import secrets
from pathlib import Path

from vflens.errors import StorageError
from vflens.storage.json_file import in_words
from vflens.storage.private import write_private
from vflens.storage.regular import read_text


def start_nonce(folder: Path, *, lab: bool) -> str:
    """The nonce of the run in ``folder``, 64 hexadecimal digits; drawn when the run begins. "" in lab mode:
    one seed, one result.

    Raises:
        StorageError: it cannot be read or written, or the run in ``folder`` has lost it.
    """
    return "" if lab else _drawn(folder / "nonce", "on which the run's noise rests")


def run_nonce(folder: Path) -> str:
    """The nonce of the run that the leader in ``folder`` begins, 64 hexadecimal digits: all parties sign it
    with what they state. No draw and no message in a log depends on it.

    Raises:
        StorageError: see :func:`start_nonce`.
    """
    return _drawn(folder / "run_nonce", "which tells the run from others of its name")


def _drawn(file: Path, use: str) -> str:
    try:
        if not file.exists() and not (file.parent / "state.json").exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            write_private(file, secrets.token_hex(32))
        nonce = read_text(file)
    except (OSError, ValueError) as error:
        raise StorageError(
            f"{file}, {use}, cannot be read or written ({in_words(error)}): use a folder that nobody changed"
        ) from error
    if not re.fullmatch("[0-9a-f]{64}", nonce):
        raise StorageError(f"{file} is not 64 hexadecimal digits: use a folder that nobody changed")
    return nonce
