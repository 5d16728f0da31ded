"""What an attack says of itself, so that audit and theory need not know it by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Audited:
    """How ``vflens audit`` runs an attack.

    It sees ``rows`` of each model, None for all; one that takes milliseconds a row asks for few.
    ``settings`` go over its defaults.
    """

    rows: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Stated:
    """What the papers state of an attack's error.

    ``center``: it submits the solution of A x = b nearest to z·1, z = ``center`` (RVG Theorem 2), or z =
    ``if_determined`` where there are fewer unknown columns than classes. ``clipped``: it moves that into the
    box, so that the closed form is a bound. ``guessed``: b comes from scores that it guessed (VAR (13),
    (21)). ``stretched``: of one column, it stretches what it saw to [0, 1] (RVG §VI).
    ``no_worse_than``: attacks that it exceeds in no row (RVG Theorem 1).
    """

    center: float | None = None
    if_determined: float | None = None
    clipped: bool = False
    guessed: bool = False
    stretched: bool = False
    no_worse_than: tuple[str, ...] = ()

    def center_of(self, columns: int, classes: int) -> float | None:
        """Z for so many unknown columns and classes."""
        determined = self.if_determined is not None and columns < classes
        return self.if_determined if determined else self.center
