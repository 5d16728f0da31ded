"""What each recipient reconstructs: figures that are never without their interval and their baseline."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from vflens.experiments.audit.record import AuditRecord
from vflens.experiments.evidence.sources import of_runs
from vflens.experiments.evidence.thresholds import BlindError, Evidence
from vflens.experiments.outcome.decide import State, above_guess, better, needed, needed_for_better
from vflens.experiments.outcome.words import in_own_unit
from vflens.experiments.results.own_units import ColumnAverage, WorstCase, column_averages, is_exact
from vflens.experiments.results.record import RecordedRun
from vflens.experiments.results.titles import rows_of
from vflens.experiments.results.verdict import attacker, named
from vflens.numerics.measures.advantage import wilson
from vflens.protocol.acts import together
from vflens.types import Document, Phase
from vflens.words import counted

INFERENCE, SINGLING_OUT, LINKABILITY = "inference", "singling out", "linkability"
WHOLE, SINGLED = "whole rows", "whole rows that fit nobody else"
NAMED = "training rows named at 10 % false alarms"
SQUARED = "squared error, columns in [0, 1]"
ALARMS = 0.1
RELEASE = "whoever knows the model and gets its predictions"
TRAFFIC = "whoever reads the messages of training"


class RiskFigure(NamedTuple):
    """A measured ``value``, the ends of its 95 % interval, and the ``baseline``: what a blind guess reaches.

    With ``share`` all are shares of rows, else errors in ``unit``.
    """

    value: float
    low: float
    high: float
    baseline: float
    share: bool = True
    unit: str = "share of rows"

    def words(self) -> tuple[str, str, str]:
        """Value, interval and baseline."""
        value, low, high, baseline = map(self._worded, self[:4])
        return value, f"{low} … {high}", baseline

    def _worded(self, value: float) -> str:
        return f"{100 * value:.1f} %" if self.share else in_own_unit(value)


class Reconstruction(NamedTuple):
    """What ``attack`` reaches for ``recipient`` in the federation ``where``: ``what`` of ``target``.

    ``term`` is the regulators', ``statistic`` "worst case" or "average", ``of`` the kind of the so many
    ``rows``; ``state`` says whether it is beyond a blind guess, and ``why`` nobody knows, "" where rows are
    too few. ``source`` is the run, the audit or the sweep.
    """

    where: str
    recipient: str
    target: str
    term: str
    statistic: str
    what: str
    attack: str
    rows: int
    of: str
    figure: RiskFigure
    state: State
    why: str = ""
    source: str = ""
    deciding: int = 0  # rows that would decide what is open, if figures stay; 0: nobody knows

    def words(self) -> tuple[str, str, str]:
        """Value, interval and baseline; "exactly" in place of an error that is none but for rounding."""
        value, ends, baseline = self.figure.words()
        root = math.sqrt if self.figure.unit == SQUARED else float
        exact = not self.figure.share and is_exact(root(self.figure.value), root(self.figure.baseline))
        return "exactly" if exact else value, ends, baseline

    @property
    def json(self) -> Document:
        """It under stable keys."""
        return {**self._asdict(), "figure": self.figure._asdict(), "state": self.state.value}


_Place: TypeAlias = tuple[str, str, str, str, str, str]  # where, recipient, target, term, statistic, what
Who: TypeAlias = Callable[[str, str], str]  # attack and scored set → recipient


def of_run_records(runs: Sequence[RecordedRun]) -> Iterator[Reconstruction]:
    """Of runs: columns on average and at worst, whole rows, labels, membership."""
    for run, evidence in zip(runs, of_runs(runs), strict=True):
        who = _readers(run)
        averages = _averages(column_averages(run), evidence.where, who)
        found = (
            *_most((*_of_evidence(evidence, who), *averages, *_named_rows(run, evidence.where))),
            *_whole_rows(run.worst_cases, evidence.where, who),
        )
        labelled = {_whose(name): f"label of {name}" for name in run.infos() if run.label_of(name)}
        named_so = (m._replace(target=labelled.get(m.target, m.target)) for m in found)
        yield from _unless_failed(named_so, evidence.failed, run_source(run))


def run_source(run: RecordedRun) -> str:
    """``run`` as a source."""
    return f"run {run.name}"


def _unless_failed(
    found: Iterable[Reconstruction], failed: Sequence[str], source: str
) -> Iterator[Reconstruction]:
    """``found`` of a ``source``; as of thresholds nothing is held while an attack failed."""
    why = f"{', '.join(failed)} failed and may find more"
    for m in (m._replace(source=source) for m in found):
        yield m._replace(state=State.UNDECIDED, why=why) if failed and m.state is State.NOT_FOUND else m


def _readers(run: RecordedRun) -> Who:
    """Who runs an attack of ``run``; those on labels and membership of one party name it."""
    adversaries = {r.attack: r.adversary for r in run.labels} | {
        r.attack: r.adversary for r in run.membership
    }
    guessing = {attack: party for attack, party in adversaries.items() if len(together(party)) == 1}

    def who(attack: str, scored_set: str) -> str:
        return named(run, guessing[attack]) if attack in guessing else attacker(run, attack)

    return who


def of_audit_record(record: AuditRecord, evidence: Evidence, source: str) -> Iterator[Reconstruction]:
    """Of an audit's ``record``, a ``source``: columns on average and at worst, whole rows."""

    def who(attack: str, scored_set: str) -> str:
        return TRAFFIC if scored_set == Phase.TRAIN else RELEASE

    averages = _averages(_audited_averages(record), evidence.where, who)
    measured = (
        *_most((*_of_evidence(evidence, who), *averages)),
        *_whole_rows(record.worst_cases, evidence.where, who),
    )
    for m in _unless_failed(measured, evidence.failed, source):
        capped = m.state is State.UNDECIDED and evidence.capped.get(m.attack) == m.rows
        yield m._replace(why=f"{m.attack} tried {counted(m.rows, 'row')} only") if capped and not m.why else m


def of_cell(evidence: Evidence, source: str) -> Iterator[Reconstruction]:
    """Of one federation of a sweep, a ``source``: columns at worst, labels, membership."""
    found = _most(_of_evidence(evidence, lambda attack, scored_set: "the adversary's party"))
    return _unless_failed(found, evidence.failed, source)


def _most(found: Iterable[Reconstruction]) -> Iterator[Reconstruction]:
    """Of each subject the attack that decides: beyond a guess before open before not; of these the one that
    takes most.
    """
    best: dict[tuple[str, ...], Reconstruction] = {}
    for m in found:
        key = (m.where, m.recipient, m.target, m.statistic, m.what)
        if key not in best or _severity(m) > _severity(best[key]):
            best[key] = m
    return iter(best.values())


def _severity(m: Reconstruction) -> tuple[int, float]:
    return -list(State).index(m.state), _gain(m.figure)


def _gain(f: RiskFigure) -> float:
    """How much of what a blind guess leaves open is taken."""
    left, wrong = (1 - f.baseline, 1 - f.value) if f.share else (f.baseline, f.value)
    return 1 - wrong / left if left else 0.0


def _of_evidence(e: Evidence, who: Who) -> Iterator[Reconstruction]:
    """Columns at worst and all together on average; labels and membership."""
    tried = Counter(f.column for f in e.found)  # as thresholds count them
    for f in e.found:
        what = f"{f.column} within {in_own_unit(f.tolerance)}"
        guess = max(f.blind, f.imputation or 0.0)
        place = (e.where, who(f.attack, f.scored_set), _whose(f.target), INFERENCE, "worst case", what)
        yield _share(place, f.attack, (f.rows, rows_of(f.scored_set)), (f.found, guess), tried[f.column])
    for b in (b for b in e.errors if not b.share and b.half_width is not None):
        yield _all_columns(b, e, who)
    for b in (b for b in e.errors if b.share):
        what, _, of = b.subject.partition(" of ")
        term = LINKABILITY if what.startswith("pairs") else INFERENCE
        named_as = "membership (AUC)" if term == LINKABILITY else what
        place = (e.where, who(b.attack, ""), of, term, "average", named_as)
        yield _share(place, b.attack, (b.rows, b.subject), (b.error, b.blind), len(e.errors))


def _all_columns(b: BlindError, e: Evidence, who: Who) -> Reconstruction:
    """The mean squared error over all columns, scaled to [0, 1]."""
    assert b.half_width is not None
    of, _, rows = b.subject.rpartition(", ")
    phase = str(Phase.TRAIN if rows.startswith(Phase.TRAIN) else Phase.PREDICT)
    ends = max(0.0, b.error - b.half_width), b.error + b.half_width
    return Reconstruction(
        *(e.where, who(b.attack, phase), of, INFERENCE, "average", "all columns"),
        attack=b.attack,
        rows=b.rows,
        of=rows,
        figure=RiskFigure(b.error, *ends, b.blind, share=False, unit=SQUARED),
        state=better(b.error, b.half_width, b.blind, b.rows, len(e.errors)),
    )


def _whose(target: str) -> str:
    return f"columns of {target}"


def _share(
    place: _Place, attack: str, of_rows: tuple[int, str], shares: tuple[float, float], tries: int
) -> Reconstruction:
    """From ``shares`` that an attack and a guess find."""
    (rows, of), (share, guess) = of_rows, shares
    figure = RiskFigure(share, *wilson(share, rows), guess)
    at = partial(above_guess, share, guess, tries=tries)
    figures: Document = {"figure": figure, "state": at(rows), "deciding": needed(at, rows)}
    return Reconstruction(*place, attack=attack, rows=rows, of=of, **figures)


def _averages(found: Iterable[ColumnAverage], where: str, who: Who) -> Iterator[Reconstruction]:
    every = list(found)
    for a in every:
        figures = a.error**2, a.high**2 - a.error**2, a.blind**2, a.rows, len(every)
        yield Reconstruction(
            *(where, who(a.attack, a.scored_set), _whose(a.target), INFERENCE, "average", a.column),
            attack=a.attack,
            rows=a.rows,
            of=rows_of(a.scored_set),
            figure=RiskFigure(
                a.error,
                a.low,
                a.high,
                a.blind,
                share=False,
                unit=f"root mean squared error, unit of {a.column}",
            ),
            state=better(*figures),
            deciding=needed_for_better(*figures),
        )


def _audited_averages(record: AuditRecord) -> Iterator[ColumnAverage]:
    """Of an audit; none without the columns' units."""
    for a in record.attacks if record.units else ():
        for j, (column, unit) in enumerate(zip(record.columns, record.units, strict=True)):
            place = (a.attack, record.subject, a.phase, a.rows, column)
            figures = {"blind": a.column_blind[j], "unit": unit}
            yield ColumnAverage.of(place, a.columns[j], a.column_stderr[j], **figures)


def _whole_rows(cases: Sequence[WorstCase], where: str, who: Who) -> Iterator[Reconstruction]:
    """Rows of which all columns are found; those of them whose answer fits no other row."""
    for c in cases:
        recipient, of_rows = who(c.attack, c.scored_set), (c.rows, rows_of(c.scored_set))
        for what, shares in (
            (WHOLE, (c.rows_found, c.control_rows)),
            (SINGLED, (c.unique, c.control_unique)),
        ):
            place = (where, recipient, _whose(c.target), SINGLING_OUT, "worst case", what)
            yield _share(place, c.attack, of_rows, shares, 2 * len(cases))


def _named_rows(run: RecordedRun, where: str) -> Iterator[Reconstruction]:
    """The share of training rows that an attack on membership names, where it names a tenth of others too; a
    guess names a tenth of both.
    """
    for r in run.membership:
        place = (where, named(run, r.adversary), f"rows of {r.target}", LINKABILITY, "worst case", NAMED)
        of_rows = max(1, r.rows // 2), "training rows among as many others"
        yield _share(place, r.attack, of_rows, (r.found_at[f"{ALARMS:g}"], ALARMS), len(run.membership))
