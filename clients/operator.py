"""The active party's answer to an operator: scores of prediction rows by number, with ids and class names."""

import numpy as np

from vflens.errors import ConfigError
from vflens.types import Array
from vflens.words import counted

_MOST = 65_536  # characters of a list of rows
_DIGITS = 10  # of a row number: int32 has no more, and Python reads no number of 4,301


def numbered(text: str, count: int) -> Array:
    """ "all", or numbers and ranges such as "0-9,17", as distinct numbers int32 below ``count``, in order.

    Raises:
        ConfigError: another text.
    """
    if text == "all":
        return np.arange(count, dtype=np.int32)
    if len(text) > _MOST:
        raise ConfigError(
            f"--rows has {counted(len(text), 'character')}: give at most {_MOST}, ranges are short"
        )
    found = np.zeros(count, bool)
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not part.isascii() or not first.isdecimal() or (dash and not last.isdecimal()):
            raise ConfigError(f"--rows {text!r}: give all, or numbers and ranges such as 0-9,17")
        if len(first) > _DIGITS or len(last) > _DIGITS or int(last or first) >= count:
            raise ConfigError(
                f"--rows {text!r}: there are {counted(count, 'prediction row')}, counted from 0"
            )
        found[int(first) : int(last or first) + 1] = True
    if not found.any():
        raise ConfigError(f"--rows {text!r} names no row: a range goes from the lower to the higher number")
    return found.nonzero()[0].astype(np.int32)
