"""Theory next to measurement: closed forms and bounds of an attack's error, beside the measured error.

They compare unclipped estimates on rows with complete equations, exact scores and the adversary's weights.
Measurement and closed form use the same rows and their moments, so they agree up to rounding, without an
interval. If they differ, an unknown defence acted or a number is wrong, and every report shows it first.

Folders of one owner add what the target does not know: noise on released scores (the coordinator's, RVG
Theorem 4) and errors of scores that the adversary guessed (the active party's, VAR (13) and (21)). Both add
Tr(B S) to the MSE of the solution nearest to a fixed point, with B from the target's weights and S the second
moment on the same rows.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vflens.errors import DataError
from vflens.experiments.results import fedadob
from vflens.experiments.results.folders import Metric, PartyRuns
from vflens.plugins.defense import installed_defense
from vflens.score.theory import statements
from vflens.storage.json_file import finite
from vflens.storage.metrics import MOST_ROWS, Name
from vflens.types import Array, Document, Role
from vflens.words import counted

#: Relative difference that rounding explains; the systems' condition numbers are far below 1e8.
TOLERANCE = 1e-6
_THEOREM_2 = "RVG Theorem 2"
#: Hooks that change scores by what no folder has a figure of.
_UNMEASURED = frozenset({"on_batch", "on_embedding"})


@dataclass(frozen=True)
class Comparison:
    """One ``statement`` on one attack: ``rows`` of ``scored`` rows have complete equations.

    ``closed`` is NaN if there are only bounds, as for a clipped estimate; a missing bound is NaN. ``excuse``
    is the reason why the statement does not cover this run, "" if it does. ``mirrored`` is the error of the
    black box if it takes 1 − x for x.
    """

    attack: str
    target: str
    scored_set: str
    rows: int
    scored: int
    statement: str
    measured: float
    closed: float = math.nan
    lower: float = math.nan
    upper: float = math.nan
    any_center: float = math.nan
    mirrored: float = math.nan
    excuse: str = ""

    @property
    def difference(self) -> float:
        """|measured − closed| over the closed form, or over 1e-12 if that is larger."""
        return abs(self.measured - self.closed) / max(self.closed, 1e-12)

    @property
    def agrees(self) -> bool:
        """Whether closed form and every bound hold, up to rounding."""
        low, high = self.measured * (1 - TOLERANCE) - 1e-18, self.measured * (1 + TOLERANCE) + 1e-18
        below = any(bound > high for bound in (self.lower, self.any_center))  # False for NaN
        return not (below or self.upper < low or self.difference > TOLERANCE)

    @property
    def verdict(self) -> str:
        """ "agrees", "disagrees" or the reason why they cannot be compared."""
        if self.excuse:
            return f"not comparable: {self.excuse}"
        return "agrees" if self.agrees else "disagrees"

    @property
    def alarm(self) -> str:
        """The sentence that every report shows first; "" unless they disagree."""
        if self.verdict != "disagrees":
            return ""
        parts = [f"{self.statement} says {self.closed:.6g}"] if math.isfinite(self.closed) else []
        lows = [b for b in (self.lower, self.any_center) if math.isfinite(b)]
        parts += [f"at least {max(lows):.6g}"] if lows else []
        parts += [f"at most {self.upper:.6g}"] if math.isfinite(self.upper) else []
        where = f"{self.attack} on {self.target} ({self.rows} {self.scored_set} rows)"
        return f"{where} measured {self.measured:.6g}, {', '.join(parts)}"


@dataclass(frozen=True)
class Disorder:
    """Theorem 1: on ``broken`` rows ``attack`` erred by more than an attack that it must not exceed."""

    attack: str
    target: str
    broken: int
    excuse: str

    @property
    def alarm(self) -> str:
        """See :attr:`Comparison.alarm`."""
        if not self.broken or self.excuse:
            return ""
        return f"{self.attack} on {self.target} breaks Theorem 1 on {counted(self.broken, 'row', ',')}"


def comparisons(run: PartyRuns) -> tuple[Comparison, ...]:
    """The last milestone of each attack that a statement covers and the target computed figures for."""
    return tuple(_joined(run, m, _kept(run, m)) for m in _last(run, Name.THEORY_MEASURED))


def milestones(run: PartyRuns) -> tuple[Comparison, ...]:
    """The comparisons of every milestone; see :func:`comparisons`."""
    return tuple(_joined(run, m, _kept(run, m)) for m in run.metrics(Name.THEORY_MEASURED))


def disorders(run: PartyRuns) -> tuple[Disorder, ...]:
    """Theorem 1's count for each attack, at the last milestone."""
    excuse = _unknown_scores(run) or _defended_scores(run)
    return tuple(Disorder(m.attack, m.target, int(m.value), excuse) for m in _last(run, Name.THEORY_DISORDER))


def alarms(run: PartyRuns) -> list[str]:
    """Every disagreement between theory and measurement in ``run``, a sentence each."""
    alarms = [c.alarm for c in comparisons(run)] + [d.alarm for d in disorders(run)]
    return [sentence for sentence in alarms if sentence]


def to_json(run: PartyRuns) -> Document:
    """The comparisons under stable keys, the alarms, and FedAdOb's theorems; a missing figure is None."""
    compared = [{**finite(vars(c)), "verdict": c.verdict} for c in comparisons(run)]
    return {"theory": compared, "theory_disagreements": alarms(run), "fedadob": fedadob.to_json(run)}


# -- what the target kept -----------------------------------------------------------------------------


def _last(run: PartyRuns, metric: Name) -> Iterator[Metric]:
    last: dict[tuple[str, str, str], Metric] = {}
    for m in run.metrics(metric):
        key = (m.attack, m.target, m.scored_set)
        if key not in last or m.rows > last[key].rows:
            last[key] = m
    yield from last.values()


def _kept(run: PartyRuns, m: Metric) -> Comparison:
    return Comparison(
        attack=m.attack,
        target=m.target,
        scored_set=m.scored_set,
        rows=int(_beside(run, m, Name.THEORY_ROWS, 0)),
        scored=m.rows,
        statement=m.detail or _THEOREM_2,
        measured=m.value,
        closed=_beside(run, m, Name.THEORY_CLOSED),
        lower=_beside(run, m, Name.THEORY_LOWER),
        upper=_beside(run, m, Name.THEORY_UPPER),
        any_center=_beside(run, m, Name.THEORY_ANY_CENTER),
        mirrored=_beside(run, m, Name.THEORY_MIRRORED),
    )


def _beside(run: PartyRuns, m: Metric, metric: Name, absent: float = math.nan) -> float:
    same = (m.attack, m.target, m.scored_set, m.rows)
    found = (f.value for f in run.metrics(metric) if (f.attack, f.target, f.scored_set, f.rows) == same)
    return next(found, absent)


# -- what only the folders together tell --------------------------------------------------------------


def _joined(run: PartyRuns, m: Metric, c: Comparison) -> Comparison:
    """``c`` with the other parties' figures on its scores, or with the reason why it cannot be compared."""
    excuse = _unknown_scores(run)
    if excuse:
        return replace(c, excuse=excuse)
    if c.statement == "RVG §VI":
        return replace(c, excuse=_misled(run, c) or _defended_scores(run))
    of = statements(c.attack)
    if of is not None and of.guessed:
        return _agnostic(run, m, c)
    defended = _defended_scores(run)
    return _noisy(run, m, c, defended) if defended else c


def _noisy(run: PartyRuns, m: Metric, c: Comparison, defended: str) -> Comparison:
    """Theorem 4's gain on top of Theorem 2, from the coordinator's moments of its noise."""
    noise = [f for f in run.metrics(Name.SCORE_NOISE) if f.rows == c.rows == c.scored]
    weights = [f for f in run.metrics(Name.THEORY_NOISE_WEIGHT) if (f.target, f.rows) == (m.target, m.rows)]
    if c.statement != _THEOREM_2 or _acting(run, _UNMEASURED) or not noise or not weights:
        return replace(c, excuse=defended)
    B, S = _of_one_size(weights[-1], noise[-1])
    gain, most = float(np.vdot(B, S)), float(np.linalg.eigvalsh(B)[-1] * np.trace(S))
    if not math.isfinite(c.closed):  # clipped: the truth is in the box, so its error is at most this
        return replace(c, statement="RVG Theorem 4", upper=c.upper + gain)
    with_noise = replace(c, statement="RVG Theorem 4", closed=c.closed + gain, any_center=math.nan)
    return replace(with_noise, lower=c.closed, upper=c.closed + most)


def _agnostic(run: PartyRuns, m: Metric, c: Comparison) -> Comparison:
    """Theorem 2 and the cost of guessed scores: VAR (13) for ls, (21) for half*."""
    outside = _parameter(run, c.attack, "outside", "clip")
    missed = [
        f
        for f in run.metrics(Name.GUESSED_SCORES_ERROR)
        if (f.attack, f.target, f.scored_set, f.rows) == (c.attack, c.target, c.scored_set, c.rows)
    ]
    weights = [f for f in run.metrics(Name.THEORY_NOISE_WEIGHT) if (f.target, f.rows) == (m.target, m.rows)]
    bare = replace(c, statement="VAR (13), (21)", closed=math.nan, lower=math.nan, upper=math.nan)
    defended = _defended_scores(run)
    if defended or c.statement != _THEOREM_2:
        return replace(
            bare,
            excuse=defended or "no statement covers guessed scores under other weights than the true ones",
        )
    if not weights:
        return replace(bare, excuse=f"the noise on more than {MOST_ROWS} classes is not kept")
    if not missed:
        return replace(
            bare,
            excuse="the scores of these rows, which it guessed, never arrived, or it was made from the "
            "record",
        )
    B, S = _of_one_size(weights[-1], missed[-1])
    closed = c.closed + float(np.vdot(B, S))
    statement = "VAR (13)" if len(run.columns_of(c.target)) < len(B) else "VAR (21)"
    if outside == "keep":
        return replace(bare, statement=statement, closed=closed)
    if outside == "clip":
        return replace(bare, statement=statement, upper=closed)
    return replace(bare, statement=statement, excuse=f"outside = {outside!r} moves estimates by ½")


def _of_one_size(weight: Metric, moment: Metric) -> tuple[Array, Array]:
    """The matrices B and S.

    Raises:
        DataError: one is damaged, or they do not fit each other.
    """
    B, S = weight.matrix, moment.matrix
    if B.shape != S.shape:
        raise DataError(
            f"{weight.name} is of {counted(len(B), 'class')}, {moment.name} of {len(S)}: copy "
            "metrics.parquet of all parties anew"
        )
    return B, S


def _misled(run: PartyRuns, c: Comparison) -> str:
    """Why a black box's error may differ from that on the column in its own orientation."""
    signs = _parameter(run, c.attack, "signs", "same")
    if signs is None:
        return "it was made from the record, with parameters that are not recorded"
    if signs == "zero_bias":
        return 'signs = "zero_bias" scales by the largest value only'
    mirrored = abs(c.measured - c.mirrored) <= TOLERANCE * max(c.mirrored, 1e-12)
    return "it took 1 − x for x: what it assumed of the signs is not true" if mirrored else ""


def _parameter(run: PartyRuns, attack: str, name: str, default: str) -> Any:
    """The configuration of the adversary's ``attack``, or None."""
    tables = (t for p in run.parties for t in p.settings.attacks if t.get("name") == attack)
    return next((t.get(name, default) for t in tables), None)


def _unknown_scores(run: PartyRuns) -> str:
    absent = [role for role in (Role.COORDINATOR, Role.ACTIVE) if not run.holds(role)]
    return f"the {absent[0]}'s folder was not given, it may have defended scores" if absent else ""


def _defended_scores(run: PartyRuns) -> str:
    """Why released scores may be inexact; "" if they are exact."""
    acting = _acting(run, _UNMEASURED | {"on_scores"})
    return f"defended by {', '.join(acting)}" if acting else ""


def _acting(run: PartyRuns, hooks: frozenset[str]) -> list[str]:
    """The configured defences that act at one of ``hooks``, and their parties."""
    return [
        f"{table.get('name')} at {party.name}"
        for party in run.parties
        for table in party.settings.defenses
        if _touches(str(table.get("name")), hooks)
    ]


def _touches(defense: str, hooks: frozenset[str]) -> bool:
    plugin = installed_defense(defense)
    return plugin is None or bool(plugin.hooks() & hooks)  # one that is not installed here may
