"""A finding: what an attack reaches of one thing, beside the best blind guess, and what is known of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from vflens.experiments.outcome.decide import State, above_guess, better, needed
from vflens.score.service import MIN_ROWS
from vflens.types import Document, Facts

_EXACT = 1 - 1e-6  # of the blind guess's error taken away: what rounding and solvers leave


class Quantity(StrEnum):
    """What a finding is of."""

    ERROR = "error"  # of a column: root mean squared, in its own unit
    RIGHT = "right"  # of a column that takes few values: the share of right ones


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What ``attack`` reaches of the column ``subject`` of ``target`` on ``rows`` rows of ``scored_set``:
    ``value`` with the ends of its 95 % interval, beside what the best ``blind`` guess reaches.

    Errors are root mean squared, in the column's own unit; ``unit`` is False where nobody knows it. Of RIGHT
    both are shares of right values. ``tries`` attacks were tried on the column. ``varies``: it takes more
    than one value among these rows; ``deciding``: how many rows would hold enough of its other values, 0 of
    a column that never varies. ``released``: what a given model lets out.
    """

    quantity: Quantity
    subject: str
    attack: str
    target: str
    scored_set: str
    rows: int
    value: float
    low: float
    high: float
    blind: float
    tries: int = 1
    unit: bool = True
    varies: bool = True
    deciding: int = 0
    released: str = ""

    @property
    def is_share(self) -> bool:
        """Whether value and guess are shares of right values."""
        return self.quantity is Quantity.RIGHT

    @property
    def share(self) -> float:
        """What is taken of what a blind guess leaves open: 1 is exact, 0 no better; of squared errors."""
        wrong, open_ = (1 - self.value, 1 - self.blind) if self.is_share else (self.value**2, self.blind**2)
        return max(0.0, 1 - wrong / open_) if open_ else 0.0

    @property
    def is_exact(self) -> bool:
        """Whether the error is that of rounding and solvers."""
        return not self.is_share and self.value < (1 - _EXACT) * self.blind

    @property
    def state(self) -> State:
        """What is known: a column that does not vary here, or fewer than 50 rows, decide nothing."""
        if not self.varies and not self.deciding:
            return State.NOT_FOUND  # it never varies: there is nothing to find
        if not self.varies or self.rows < MIN_ROWS:
            return State.UNDECIDED
        return self._at(self.rows)

    @property
    def rows_needed(self) -> int:
        """How many rows would decide, if figures stay; 0 where none or too many would."""
        if self.state is not State.UNDECIDED:
            return 0
        rows = max(MIN_ROWS, self.deciding)
        if not self.varies:
            return rows
        return needed(self._at, rows)

    def _at(self, rows: int) -> State:
        """The state of these figures on ``rows`` rows."""
        if self.is_share:
            return above_guess(self.value, self.blind, rows, self.tries)
        half = (self.high**2 - self.value**2) * math.sqrt(self.rows / rows)
        return better(self.value**2, half, self.blind**2, rows, self.tries)

    @classmethod
    def of_json(cls, facts: Facts) -> Finding:
        """The finding whose :attr:`json` is ``facts``."""
        own = {name: facts[name] for name in cls.__dataclass_fields__}
        return cls(**{**own, "quantity": Quantity(facts["quantity"])})

    @property
    def json(self) -> Document:
        """It under stable keys."""
        found = {**vars(self), "quantity": self.quantity.value, "state": self.state.value}
        return {**found, "share": self.share, "rows_needed": self.rows_needed}
