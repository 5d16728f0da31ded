"""An attack's declarations, so that audit and theory need not know its name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vflens.types import Knowledge, Phase


@dataclass(frozen=True)
class Declared:
    """The knowledge that an attack may read, the phases whose messages it may read, the rows it estimates."""

    needs: frozenset[Knowledge]
    phases: frozenset[Phase]
    rows: frozenset[Phase]


@dataclass(frozen=True)
class Audited:
    """How ``vflens audit`` runs an attack.

    It estimates ``rows`` of each model, None for all; a slow attack declares few. ``settings`` override its
    defaults.
    """

    rows: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Stated:
    """The papers' statements on an attack's error.

    ``center``: it submits the solution of A x = b nearest to z·1, z = ``center`` (RVG Theorem 2), or z =
    ``if_determined`` where there are fewer unknown columns than classes. ``clipped``: it moves that into the
    box, so that the closed form is a bound. ``guessed``: b comes from scores that it guessed (VAR (13),
    (21)). ``stretched``: for one column, it stretches the observed values to [0, 1] (RVG §VI).
    ``no_worse_than``: attacks that it exceeds in no row (RVG Theorem 1). ``key_guess``: settings under which
    it guesses a passport's key, whatever it observes (FedAdOb Theorem 1). ``fits_labels``: it fits a model to
    granted labels (FedAdOb Theorem 2).
    """

    center: float | None = None
    if_determined: float | None = None
    clipped: bool = False
    guessed: bool = False
    stretched: bool = False
    no_worse_than: tuple[str, ...] = ()
    key_guess: Mapping[str, Any] = field(default_factory=dict)
    fits_labels: bool = False

    def center_of(self, columns: int, classes: int) -> float | None:
        """Z for so many unknown columns and classes."""
        determined = self.if_determined is not None and columns < classes
        return self.if_determined if determined else self.center
