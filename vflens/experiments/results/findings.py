"""What the attacks of a run found, as findings: columns in their own units, labels, members, whole people.

The target alone knows what 1 of a scaled column stands for: figures in a column's own unit need its folder.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, TypeAlias

from vflens.experiments.outcome.decide import HARDLY
from vflens.experiments.outcome.finding import AFFINE, Finding, Findings, Quantity, with_tries
from vflens.experiments.results.folders import Metric, PartyRuns
from vflens.experiments.results.results import Result, column_errors, final, is_baseline, results
from vflens.experiments.results.titles import attacker, defenses, named, places
from vflens.numerics.measures.advantage import Advantage, advantage
from vflens.numerics.measures.intervals import ends_of, half_width
from vflens.plugins.attack import is_blind
from vflens.protocol.acts import together
from vflens.score.worst import Shares
from vflens.storage.json_file import Rows, Share, Size, Word
from vflens.storage.metrics import Name
from vflens.types import Document, Facts, Phase, Role

if TYPE_CHECKING:
    from vflens.experiments.results.labels_membership import LabelResult, MembershipResult
    from vflens.experiments.results.record import RecordedRun

IMPUTATION = "imputation"  # the attack that guesses from the adversary's own columns
ALARMS = 0.1  # at so many false alarms an attack on membership names training rows
_SHOWN = 12  # columns of a result, in a table
#: Shares that an attack finds → the same of the best constants.
_SHARES = {
    Name.CELLS_FOUND: Name.BLIND_CELLS_FOUND,
    Name.ROWS_FOUND: Name.BLIND_ROWS_FOUND,
    Name.ROWS_UNIQUE: Name.BLIND_ROWS_UNIQUE,
}
Reader: TypeAlias = Callable[[str], str]  # an attack → who runs it, in words


def of_runs(runs: Sequence[RecordedRun]) -> list[Findings]:
    """The findings of each run, each named so that they are told apart."""
    return [replace(run.findings, where=where) for run, where in zip(runs, places(runs), strict=True)]


def of_run(run: RecordedRun) -> Findings:
    """What its attacks found, each at its last milestone, but blind ones."""
    return Findings(
        where=places([run])[0],
        found=with_tries(_found(run)),
        columns=tuple(_names(run)),
        defended=bool(defenses(run)),
        failed=tuple(dict.fromkeys(f.attack for f in run.failed)),
        source=run_source(run),
    )


def run_source(run: RecordedRun) -> str:
    """``run`` as a source."""
    return f"run {run.name}"


def _names(run: RecordedRun) -> Iterator[str]:
    """The columns of all parties, and a numeric label."""
    for info in run.infos().values():
        yield from (c.name for c in (*info.columns, *filter(None, [info.label])) if not c.pixel)


def _found(run: RecordedRun) -> Iterator[Finding]:
    """Columns to within their tolerance, then what is judged of all columns, labels and members, then errors
    in own units, and people.
    """
    who = _readers(run)
    scored = [r for r in run.results if not is_blind(r.attack)]
    yield from (replace(f, adversary=who(f.attack)) for f in found_columns(run))
    for r in scored:
        yield replace(of_result(run, r), adversary=who(r.attack))
    yield from (of_label(run, found) for found in run.labels)
    yield from (of_member(run, found) for found in run.membership)
    # Of rows that nobody trained on an attack may tell people apart: no leak of training.
    sites = (f for f in run.sites if f.scored_set == Phase.TRAIN)
    yield from (replace(f, adversary=named(run, Role.OPERATOR)) for f in run.sites if f.deviation is not None)
    yield from _affine(run, who)
    for f in (*sites, *(f for r in scored for f in (*errors(run, r), *rights(run, r)))):
        yield replace(f, adversary=who(f.attack))
    for m in run.membership:
        of = (m.found_at[f"{ALARMS:g}"], max(1, m.rows // 2), ALARMS)
        yield Finding.of_share(Quantity.NAMED, *of, **_of_pairs(run, m))
    for f in (f for case in run.worst_cases for f in case.findings):
        yield replace(f, adversary=who(f.attack), label=run.label_of(f.target) is not None)


def of_result(run: PartyRuns, r: Result) -> Finding:
    """The error over all columns."""
    ends = {} if r.half_width is None else ends_of(r.mse, r.half_width)
    figures: Facts = {"value": r.mse, "blind": r.blind, "guess": r.blind_guess, **ends}
    place = {**_place(run, r), "subject": "label" if run.label_of(r.target) else "columns"}
    return Finding(quantity=Quantity.ALL, **place, **figures)


def _place(run: PartyRuns, r: Result) -> Document:
    """The fields of a finding that say where ``r`` was scored."""
    place = {"attack": r.attack, "target": r.target, "scored_set": r.scored_set, "rows": r.rows}
    return {**place, "label": run.label_of(r.target) is not None}


def _readers(run: RecordedRun) -> Reader:
    """Who runs an attack of ``run``; those on labels and membership of one party name it."""
    parties = {r.attack: r.adversary for r in run.labels} | {r.attack: r.adversary for r in run.membership}
    alone = {attack: named(run, party) for attack, party in parties.items() if len(together(party)) == 1}
    return lambda attack: alone.get(attack) or attacker(run, attack)


def of_label(run: RecordedRun, r: LabelResult) -> Finding:
    """The share of right labels."""
    return r.finding(_reader(run, r))


def of_member(run: RecordedRun, m: MembershipResult) -> Finding:
    """AUC as if it were a share of the smaller class, half of the candidates: its variance is at most
    A(1 − A)/min(m, n) (Birnbaum and Klose, Annals of Mathematical Statistics 28 (1957)).
    """
    return Finding.of_share(Quantity.MEMBERS, m.auc, max(1, m.rows // 2), m.blind, **_of_pairs(run, m))


def _of_pairs(run: PartyRuns, m: MembershipResult) -> Document:
    place = {"attack": m.attack, "adversary": _reader(run, m), "target": m.target}
    return {**place, "subject": "members", "scored_set": Phase.TRAIN}


def _reader(run: PartyRuns, r: LabelResult | MembershipResult) -> str:
    """Who runs it; of several that collude all."""
    return named(run, r.adversary) if len(together(r.adversary)) == 1 else attacker(run, r.attack)


def _affine(run: RecordedRun, who: Reader) -> Iterator[Finding]:
    """Attacks that leave an affine map open, where it explains more than hardly anything: no interval."""
    rows = {(m.attack, m.target): m.rows for p in run.parties for m in p.metrics if m.name == "affine_r2"}
    for (attack, target), r2 in run.explained.items():
        n, d = rows[attack, target], len(run.columns_of(target))
        adjusted = 1 - (1 - r2) * (n - 1) / (n - d - 1) if n > d + 1 else 1.0
        if adjusted > HARDLY:
            place: Facts = {"attack": attack, "target": target, "scored_set": Phase.TRAIN, "rows": n}
            figures: Facts = {"value": 1 - adjusted, "blind": 1.0, "adversary": who(attack)}
            yield Finding(quantity=Quantity.ALL, subject=AFFINE, **place, **figures)


def best_own_errors(run: PartyRuns) -> tuple[Finding, ...]:
    """:func:`own_errors` of the most successful attack on each target."""
    best = {r.target: r for r in reversed(final(run))}
    return tuple(error for r in best.values() for error in own_errors(run, r))


def own_errors(run: PartyRuns, result: Result) -> tuple[Finding, ...]:
    """The columns of ``result`` of which it takes most of the blind error away, best first; at most 12.

    Columns that it finds no better than blind, constant ones and pixels are left out.
    """
    found = [*rights(run, result), *errors(run, result)]
    columns = {f.subject: f for f in reversed(found)}  # of a finite column the share
    better = sorted((f for f in columns.values() if f.gain > 0), key=lambda f: (-f.gain, f.subject))
    return tuple(better[:_SHOWN])


def errors(run: PartyRuns, r: Result) -> Iterator[Finding]:
    """The root mean squared error of each column, in its own unit; none of pixels and of older runs."""
    stderr, units = (
        figures_of(run, Name.COLUMN_MSE_STDERR, r, r.attack),
        figures_of(run, Name.COLUMN_UNIT, r),
    )
    for e in column_errors(run, r):
        if e.column in units:
            squares = {"value": e.mse, "blind": e.blind}
            if e.column in stderr:
                squares |= ends_of(e.mse, half_width(stderr[e.column]))
            figures: Facts = {name: math.sqrt(square) * units[e.column] for name, square in squares.items()}
            yield Finding(quantity=Quantity.ERROR, subject=e.column, **_place(run, r), **figures)


def rights(run: PartyRuns, r: Result) -> Iterator[Finding]:
    """The share of right values of each column that has finitely many."""
    blind = figures_of(run, Name.COLUMN_BLIND_RIGHT, r)
    for guess in {m.attack for m in run.metrics(Name.COLUMN_RIGHT) if is_baseline(m, r.adversary)}:
        imputed = figures_of(run, Name.COLUMN_RIGHT, r, guess)
        blind = {column: max(share, imputed.get(column, 0.0)) for column, share in blind.items()}
    for column, share in figures_of(run, Name.COLUMN_RIGHT, r, r.attack).items():
        if column in blind:
            place: Facts = {**_place(run, r), "subject": column}
            yield Finding.of_share(Quantity.RIGHT, share, blind=blind[column], **place)


def found_columns(run: PartyRuns) -> Iterator[Finding]:
    """By attack and column the share of rows that it finds to within the column's tolerance, beside what the
    constant that finds most and imputation find; none of pixels and of older runs.
    """
    for r in (r for r in final(run) if not is_blind(r.attack)):
        blind, tolerance = (
            figures_of(run, Name.COLUMN_BLIND_FOUND, r),
            figures_of(run, Name.COLUMN_TOLERANCE, r),
        )
        imputed = figures_of(run, Name.COLUMN_FOUND, r, IMPUTATION)
        for column, share in figures_of(run, Name.COLUMN_FOUND, r, r.attack).items():
            if column in blind and column in tolerance:
                guesses: Facts = {"imputation": imputed.get(column), "tolerance": tolerance[column]}
                place: Facts = {**_place(run, r), "subject": column, **guesses}
                yield Finding.of_share(Quantity.WITHIN, share, blind=blind[column], **place)


def figures_of(run: PartyRuns, metric: Name, result: Result, attack: str = "") -> dict[str, float]:
    """Column → figure of ``metric`` on the rows of ``result``."""
    place = (attack, result.target, result.scored_set, result.rows)
    return {
        m.column: m.value
        for m in run.metrics(metric)
        if (m.attack, m.target, m.scored_set, m.rows) == place and math.isfinite(m.value)
    }


@dataclass(frozen=True, kw_only=True)
class WorstCase:
    """What the most successful attack finds of the rows of ``target``: of ``rows`` the shares of ``cells``
    and ``rows_found`` within the columns' tolerances, and of rows found whose answer fits no other row of the
    table (``unique``); the same three of the best blind guess, constants or imputation, each by the best for
    it; the error of the most exposed 1 % of rows.
    """

    target: str
    attack: Word
    scored_set: Word
    rows: Rows
    cells: Share = 0.0
    rows_found: Share
    unique: Share
    control_cells: Share = 0.0
    control_rows: Share
    control_unique: Share
    exposed_mse: Size = 0.0

    def __post_init__(self) -> None:
        for alone, whole in (("unique", "rows_found"), ("control_unique", "control_rows")):
            if getattr(self, alone) > getattr(self, whole) + 1e-9:
                raise ValueError(f"{alone}: it is at most {whole}")

    @classmethod
    def of(
        cls, place: tuple[str, str, str, int], found: Shares, control: Shares, exposed_mse: float
    ) -> WorstCase:
        """What is ``found`` of ``place`` (target, attack, scored set, rows), and by the best blind guess,
        the ``control``.
        """
        names = (f.name for f in fields(cls))
        figures: Document = dict(zip(names, (*place, *found, *control, exposed_mse), strict=True))
        return cls(**figures)

    @property
    def advantage_cells(self) -> Advantage:
        """The advantage over the guess with its 95 % interval, of cells as if a row were one."""
        return advantage(self.cells, self.control_cells, self.rows)

    @property
    def findings(self) -> Iterator[Finding]:
        """Rows of which all columns are found; those of them whose answer fits no other row."""
        place: Facts = {"target": self.target, "attack": self.attack, "scored_set": self.scored_set}
        shares = (self.rows_found, self.control_rows), (self.unique, self.control_unique)
        for quantity, (share, guess) in zip((Quantity.WHOLE, Quantity.ALONE), shares, strict=True):
            yield Finding.of_share(quantity, share, self.rows, guess, subject="rows", **place)

    @property
    def words(self) -> str:
        """It in one sentence."""
        of_cells, of_rows, alone = (
            f"{100 * found:.1f} % {what} (a blind guess {100 * guess:.1f} %)"
            for found, what, guess in (
                (self.cells, "of cells", self.control_cells),
                (self.rows_found, "of rows whole", self.control_rows),
                (self.unique, "alone", self.control_unique),
            )
        )
        advantage_words = f"advantage in cells {_interval(self.advantage_cells)}"
        return f"{self.attack} finds {of_cells}, {of_rows}, {alone}; {advantage_words}"

    @property
    def json(self) -> Document:
        """It under stable keys; an undefined figure is None."""
        of_rows = advantage(self.rows_found, self.control_rows, self.rows)
        advantages = {
            name: {k: None if math.isnan(v) else v for k, v in found._asdict().items()}
            for name, found in (("advantage_cells", self.advantage_cells), ("advantage_rows", of_rows))
        }
        return {**vars(self), **advantages, "words": self.words}


def _interval(found: Advantage) -> str:
    if math.isnan(found.value):
        return "undefined"
    return f"{found.value:.2f} ({found.low:.2f} … {found.high:.2f})"


def worst_cases(run: PartyRuns) -> tuple[WorstCase, ...]:
    """The most successful attack on each target and scored set, where the columns are no pixels."""
    best = {(r.target, r.scored_set): r for r in reversed(final(run)) if not is_blind(r.attack)}
    return tuple(case for r in best.values() if (case := _worst_case(run, r)) is not None)


def _worst_case(run: PartyRuns, r: Result) -> WorstCase | None:
    def share(name: Name, attack: str = "") -> list[float]:
        place = (attack, r.target, r.scored_set, r.rows)
        return [m.value for m in run.metrics(name) if (m.attack, m.target, m.scored_set, m.rows) == place]

    if not share(Name.CELLS_FOUND, r.attack) or not share(Name.BLIND_ROWS_UNIQUE):
        return None
    guesses = {m.attack for m in run.metrics(Name.CELLS_FOUND) if is_baseline(m, r.adversary)}
    control = (
        max([*share(constants), *(value for guess in guesses for value in share(name, guess))])
        for name, constants in _SHARES.items()
    )
    found = Shares(*(share(name, r.attack)[0] for name in _SHARES))
    place = (r.target, r.attack, r.scored_set, r.rows)
    return WorstCase.of(place, found, Shares(*control), share(Name.EXPOSED_MSE, r.attack)[0])


@dataclass(frozen=True)
class ColumnBits:
    """Entropy in bits of a finite column: ``blind`` H(X), and H(X | X̂) of an attack."""

    column: str
    attack: str
    bits: float
    blind: float


def column_bits(run: PartyRuns, target: str) -> tuple[ColumnBits, ...]:
    """For each finite column of ``target`` the attack that leaves the fewest bits, at its last milestone."""
    last = max((r.rows for r in results(run) if r.target == target), default=0)
    here = [m for m in run.metrics(Name.COLUMN_CONDITIONAL_ENTROPY) if (m.target, m.rows) == (target, last)]
    blind = {
        m.column: m.value for m in run.metrics(Name.COLUMN_ENTROPY) if (m.target, m.rows) == (target, last)
    }
    best: dict[str, Metric] = {}
    for m in here:
        if m.column in blind and (m.column not in best or m.value < best[m.column].value):
            best[m.column] = m
    return tuple(ColumnBits(c, m.attack, m.value, blind[c]) for c, m in best.items())
