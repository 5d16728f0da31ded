"""What two parties opened in protected training, step by step, as one of them recorded it."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from vflens.types import Array, Released


class OpenedStep(NamedTuple):
    """What the step ``number`` opened, of its ``rows`` int32 (n,): "delta" and "change" (d, k'), "logits" and
    "rho" (n, k'), uint64; what was not recorded lacks.
    """

    number: int
    rows: Array
    arrays: Mapping[str, Array]


def opened_steps(messages: Iterable[Released]) -> list[OpenedStep]:
    """What each step opened, from the messages of one party, in the order of steps."""
    rows: dict[int, Array] = {}
    found: dict[int, dict[str, Array]] = {}
    for message in messages:
        step, second = divmod(message.exchange.step, 2)
        if len(message.rows):
            rows[step] = message.rows
        for name, array in (message.tensors or {}).items():
            if not name.endswith(" share"):
                before = not second and name in ("change", "rho")
                found.setdefault(step - before, {})[name] = array.view(np.uint64)
    return [OpenedStep(step, rows[step], found[step]) for step in sorted(found) if step in rows]
