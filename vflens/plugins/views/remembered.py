"""What attacks made of views in one process: the same view and the same draws give the same again.

Only a scoreboard remembers: it runs the same attacks on the same people behind one defence after the other,
and many a defence changes nothing that an attack reads.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from vflens.plugins.views.target import TargetView
from vflens.types import Array, Estimate

if TYPE_CHECKING:
    from vflens.plugins.attack import Attack

#: Digest → estimate; None: nothing is remembered.
REMEMBERED: ContextVar[dict[str, Estimate] | None] = ContextVar("REMEMBERED", default=None)


def recalled(
    attack: Attack, view: TargetView, rng: np.random.Generator, estimate: Callable[[], Estimate]
) -> Estimate:
    """What ``estimate`` finds, or found of the same rows of the same view, where it ``is_remembered``."""
    kept = REMEMBERED.get()
    if kept is None or not view.is_remembered:
        return estimate()
    facts = f"{type(attack)} {attack!r} {rng.bit_generator.state} {view.public_facts()}"
    shown = [view.learned(("digest", *of), partial(_digest, view.readable(*of))) for of in view.messages()]
    owned = view.learned("digest", partial(_digest, view.owned()))
    key = _digest([facts, view.rows, *shown, owned])
    if key not in kept:
        kept[key] = estimate()
    return copy.deepcopy(kept[key])


def _digest(parts: Iterable[str | Array]) -> str:
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        if isinstance(part, str):
            found.update(part.encode() + b"\0")
        else:
            found.update(f"{part.dtype} {part.shape}\0".encode())
            found.update(np.ascontiguousarray(part).data)
    return found.hexdigest()
