"""Words of sentences for people."""

from typing import SupportsIndex


def counted(number: float | SupportsIndex, one: str, form: str = "", *, many: str = "") -> str:
    """``number`` in ``form`` with its noun: "1 row", "2 classes", "0 parties".

    ``one`` is the noun of a single thing, a verb may follow; ``many`` that of others where it is no plain
    plural: "1 record has", "2 records have".
    """
    shown = format(number, form)
    return f"{shown} {one if shown == '1' else many or _plural(one)}"


def _plural(noun: str) -> str:
    if noun.endswith(("s", "x", "tch", "nch")):
        return f"{noun}es"
    return f"{noun[:-1]}ies" if noun.endswith(("ty", "ry")) else f"{noun}s"
