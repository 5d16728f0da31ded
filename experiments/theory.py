"""Theory next to measurement: what Theorem 2 says of ``ls`` and ``half_star``, beside what they reached.

Like with like: unclipped estimates on rows with complete equations, exact scores, true parameters. Measurement
and closed form use the same rows, so they agree but for rounding; where they do not, either a defence
acted (then the theorem says nothing) or something is wrong, and the report says so in red.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from experiments.folders import Metric, Run
from vfl.errors import PluginError
from vfl.registry import DEFENSES
from vfl.types import Role

#: Relative difference that rounding explains; the systems' condition numbers are far below 1e8.
TOLERANCE = 1e-6
_TOUCH = frozenset({"on_inputs", "on_embedding", "on_scores", "on_parameters"})


@dataclass(frozen=True)
class Comparison:
    """Theorem 2 on one attack: ``rows`` of ``scored`` rows have complete equations.

    ``upper`` is None where the model has not full rank. ``excuse`` says why the theorem does not cover this
    run, "" if it does.
    """

    attack: str
    target: str
    rows: int
    scored: int
    measured: float
    closed: float
    lower: float
    upper: float | None
    any_center: float
    excuse: str

    @property
    def difference(self) -> float:
        """|measured − closed|, as a share of the closed form; of 1e-12 where that is smaller."""
        return abs(self.measured - self.closed) / max(self.closed, 1e-12)

    @property
    def agrees(self) -> bool:
        """Whether closed form and every bound hold, up to rounding."""
        slack = TOLERANCE * max(self.closed, 1e-12)
        above = max(self.lower, self.any_center) <= self.measured + slack
        below = self.upper is None or self.measured <= self.upper + slack
        return self.difference <= TOLERANCE and above and below

    @property
    def verdict(self) -> str:
        """ "agrees", "disagrees" or why they cannot be compared."""
        if self.agrees:
            return "agrees"
        return f"not comparable: {self.excuse}" if self.excuse else "disagrees"


@dataclass(frozen=True)
class Disorder:
    """Theorem 1: on ``broken`` rows ``attack`` erred by more than the weaker attack that it must not exceed."""

    attack: str
    target: str
    broken: int
    excuse: str


def comparisons(run: Run) -> tuple[Comparison, ...]:
    """The last milestone of each attack that Theorem 2 covers and the target computed figures for."""
    return tuple(
        Comparison(
            *(m.attack, m.target, int(_beside(run, m, "theory_rows", 0)), m.rows, m.value),
            closed=_beside(run, m, "theory_closed"),
            lower=_beside(run, m, "theory_lower"),
            upper=_finite(_beside(run, m, "theory_upper")),
            any_center=_beside(run, m, "theory_any_center"),
            excuse=_excuse(run),
        )
        for m in _last(run, "theory_measured")
    )


def disorders(run: Run) -> tuple[Disorder, ...]:
    """Theorem 1's count of each attack, at the last milestone."""
    return tuple(
        Disorder(m.attack, m.target, int(m.value), _excuse(run)) for m in _last(run, "theory_disorder")
    )


def _last(run: Run, metric: str) -> Iterator[Metric]:
    last: dict[tuple[str, str], Metric] = {}
    for m in run.metrics(metric):
        key = (m.attack, m.target)
        if key not in last or m.rows > last[key].rows:
            last[key] = m
    yield from last.values()


def _beside(run: Run, m: Metric, metric: str, absent: float = math.nan) -> float:
    same = (m.attack, m.target, m.scored_set, m.rows)
    found = (f.value for f in run.metrics(metric) if (f.attack, f.target, f.scored_set, f.rows) == same)
    return next(found, absent)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _excuse(run: Run) -> str:
    """Why scores or parameters need not be those of the theorem; "" if they are."""
    acting = [
        f"{table.get('name')} at {party.name}"
        for party in run.parties
        for table in party.settings.defenses
        if _touches(str(table.get("name")))
    ]
    if acting:
        return f"defended by {', '.join(acting)}"
    absent = [role for role in (Role.COORDINATOR, Role.ACTIVE) if not run.holds(role)]
    return f"the {absent[0]}'s folder was not given, it may have defended scores" if absent else ""


def _touches(defense: str) -> bool:
    try:
        return bool(DEFENSES.get(defense).hooks() & _TOUCH)  # type: ignore[attr-defined]
    except PluginError:
        return True  # not installed here: it may
