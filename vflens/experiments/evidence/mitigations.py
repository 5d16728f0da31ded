"""The defences that were tried, what is still found under them, and what they cost."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from vflens.experiments.audit.bench import Wanted
from vflens.experiments.audit.defenses import Defended, Mean
from vflens.experiments.audit.record import AuditRecord
from vflens.experiments.evidence.measured import LINKABILITY, as_json, statistic, term
from vflens.experiments.evidence.sources import NO_DEFENCE, cell_name, varied
from vflens.experiments.outcome.decide import State
from vflens.experiments.outcome.finding import Finding
from vflens.experiments.outcome.words import in_own_unit
from vflens.experiments.results.findings import run_source
from vflens.experiments.results.record import RecordedRun
from vflens.experiments.results.titles import defenses, places, tells_defenses
from vflens.experiments.results.utility import UTILITY, worth
from vflens.numerics.measures.advantage import wilson
from vflens.numerics.measures.intervals import interval
from vflens.plugins.attack import is_blind
from vflens.storage.metrics import Name
from vflens.types import Document, Facts
from vflens.words import counted

NO_INTERVAL = "not measured with an interval: one seed"
NO_WORTH = "not measured: no federation under it has a figure"
NO_TWIN = "not measured: no undefended federation of the same data stands beside it"
NO_SHARE = "the audit's record has no share of rows with its interval"
NO_FIGURE = "the audit's record has no figure of what the model is worth"
PAIRED = "the interval is that of what is lost, model by model"
NO_ATTACK = "not known: no attack could run"
NOTHING = "nothing: every share is 0.0 %"
NO_COLUMN = "not known: no attack on columns has a share found"
#: What a measure of a model's worth can be.
_RANGES = {
    Name.ACCURACY: (0.0, 1.0),
    Name.AUC: (0.0, 1.0),
    Name.R2: (-math.inf, 1.0),
    Name.RMSE: (0.0, math.inf),
}
_ENOUGH_SEEDS = 5  # of fewer an interval by Student's t is wide: readers are told
_WORTH = (Name.ACCURACY, Name.R2, Name.RMSE)  # of a run's or a sweep's model: of classes the first


class Worth(NamedTuple):
    """What a model is worth, the ends of its 95 % interval, and what it is ``without`` the defence; a share
    of rows, else in ``unit``.
    """

    value: float
    low: float
    high: float
    without: float
    share: bool = True
    unit: str = "share of rows"

    def words(self) -> tuple[str, str, str]:
        """Value, interval and what it is without the defence."""
        value, low, high, before = (f"{100 * v:.1f} %" if self.share else in_own_unit(v) for v in self[:4])
        return value, f"{low} … {high}", before

    @property
    def json(self) -> Document:
        """It under stable keys."""
        return {("baseline" if k == "without" else k): v for k, v in self._asdict().items()}


class Mitigation(NamedTuple):
    """A defence in the federation ``where`` of a ``source``: the column that is still found most (``worst``),
    or why there is none (``unfound``); and its cost: by measure what the model is worth, beside that without
    a defence, or why not in ``words``, which also say how few seeds its interval comes from.

    The measure is accuracy, in an audit of two classes AUC; of a number R² and RMSE in its unit.
    """

    source: str
    where: str
    worst: Finding | None
    worth: Mapping[Name, Worth]
    words: str = ""
    unfound: str = ""

    @property
    def json(self) -> Document:
        """It under stable keys."""
        return {
            "source": self.source,
            "where": self.where,
            "worst": as_json(self.worst) if self.worst else None,
            **{name: self.worth[name].json if name in self.worth else None for name in _RANGES},
            "words": self.words,
            "unfound": self.unfound,
        }


def of_runs_tried(runs: Sequence[RecordedRun], measured: Sequence[Finding]) -> Iterator[Mitigation]:
    """The defended runs, each beside an undefended one of the same data."""
    plain = [run for run in runs if tells_defenses(run) and not defenses(run)]
    for run, where in zip(runs, places(runs), strict=True):
        if defenses(run):
            twin = _twin(run, plain)
            worth = {name: f for name in _WORTH if twin and (f := _beside(name, run, twin))}
            words = "" if worth else NO_TWIN
            ran = {r.attack for r in run.results} | {r.attack for r in run.labels}
            ran |= {r.attack for r in run.membership}
            worst, unfound = _most_found(measured, where, ran)
            yield Mitigation(run_source(run), where, worst, worth, words, unfound)


def _twin(run: RecordedRun, plain: Sequence[RecordedRun]) -> RecordedRun | None:
    """One of the undefended runs ``plain``, of the same experiment, or else of the same columns."""
    alike = [other for other in plain if _columns(other) == _columns(run)]
    return next((o for o in alike if _experiment(o) == _experiment(run)), next(iter(alike), None))


def _columns(run: RecordedRun) -> list[tuple[str, list[str]]]:
    return [(name, [c.name for c in info.columns]) for name, info in sorted(run.infos().items())]


def _experiment(run: RecordedRun) -> str:
    return run.name.rpartition("/")[0]


def _beside(name: Name, run: RecordedRun, base: RecordedRun) -> Worth | None:
    """The measure ``name`` of ``run`` over its prediction rows, beside that of ``base``; None where one lacks
    it, or its rows.
    """
    now, before = run.utility.get(name), base.utility.get(name)
    rows = sum(next((m.rows for m in p.metrics[::-1] if m.name is name), 0) for p in run.parties)
    if now is None or before is None or not rows:
        return None
    if name is Name.ACCURACY:
        return Worth(now, *wilson(now, rows), before)
    error = run.utility[Name.RMSE]
    half = 1.96 * next((m.value for p in run.parties for m in p.metrics if m.name is Name.RMSE_STDERR), 0.0)
    ends = max(error - half, 0.0), error + half
    if name is Name.RMSE:
        return Worth(now, *ends, before, share=False, unit=_units(run)[name])
    # The same interval: 1 − R² is the square of that error over the variance of the rows' numbers.
    low, high = (1 - (1 - now) * (end / error) ** 2 if error else now for end in ends[::-1])
    return Worth(now, low, high, before, share=False, unit=_units(run)[name])


def _units(run: RecordedRun | None = None) -> dict[Name, str]:
    """Measure of a number → its unit; that of the label of ``run`` has its name."""
    named = (info.label.name for info in (run.infos() if run else {}).values() if info.label)
    return {Name.R2: UTILITY[Name.R2], Name.RMSE: f"unit of {next(named, 'the label')}"}


def of_sweep_tried(
    rows: Sequence[Facts],
    refused: Sequence[Facts],
    measured: Sequence[Finding],
    undefended: str,
    source: str,
) -> Iterator[Mitigation]:
    """The defences of the ``rows`` of a sweep, the ``source``, over seeds: each beside the undefended
    federations of the same other settings; then those under which nothing ran: their rows were ``refused``.
    """
    by_seed: dict[tuple[str, str], dict[int, Facts]] = {}
    for r in rows:
        if r.get(worth(r)) is not None:
            by_seed.setdefault((f"with {cell_name(r, undefended)}", varied(r)), {})[r["seed"]] = r
    for (where, rest), found in by_seed.items():
        plain = [*by_seed.get((f"with {NO_DEFENCE}{rest}", rest), {}).values()]
        if where != f"with {NO_DEFENCE}{rest}":
            figures, text = _over_seeds([*found.values()], plain)
            ran = (r["attack"] for r in rows if f"with {cell_name(r, undefended)}" == where)
            worst, unfound = _most_found(measured, where, ran)
            yield Mitigation(source, where, worst, figures, text, unfound)
    ran_in = {where for where, _ in by_seed}
    idle = dict.fromkeys(f"with {cell_name(r, undefended)}" for r in refused if r["defense"] != undefended)
    for where in (w for w in idle if w not in ran_in):
        yield Mitigation(source, where, None, {}, NO_WORTH, NO_ATTACK)


def _over_seeds(facts: Sequence[Facts], plain: Sequence[Facts]) -> tuple[dict[Name, Worth], str]:
    """The mean of each measure beside that of ``plain``, its interval cut at what the measure can be; and in
    words why there is none, or that its seeds are few.
    """
    if not plain or len(facts) < 2:
        return {}, NO_INTERVAL if plain else NO_TWIN
    figures = {}
    for name in (n for n in _WORTH if all(r.get(n) is not None for r in (*facts, *plain))):
        mean, half = interval([r[name] for r in facts])
        least, most = _RANGES[name]
        ends = max(mean - half, least), min(mean + half, most), interval([r[name] for r in plain])[0]
        share, unit = name is Name.ACCURACY, _units().get(name, "share of rows")
        figures[name] = Worth(mean, *ends, share=share, unit=unit)
    return figures, "" if len(facts) >= _ENOUGH_SEEDS else f"interval from {counted(len(facts), 'seed')} only"


def of_audit_tried(record: AuditRecord, source: str) -> Iterator[Mitigation]:
    """The defences of an audit, the ``source``: the effect in words, and what the model is worth then."""
    fitting = [(d.defense, d.settings) for d in record.fitting]
    for d in record.defenses:
        settings = "".join(f", {name} {value}" for name, value in d.settings.items())
        affordable = (d.defense, d.settings) in fitting
        words = d.reason or f"{_effect(record.aims, d, affordable=affordable)}; {d.price}"
        worth = dict(_less_lost(d, record.utility))
        words = f"{words}; {PAIRED if worth else NO_FIGURE}"
        yield Mitigation(source, f"{d.defense}{settings} at {d.at}", None, worth, words, _column_of(d))


def _less_lost(tried: Defended, utility: Mapping[str, Mean]) -> Iterator[tuple[Name, Worth]]:
    """The mean of an audit's measure without a defence less what one that was ``tried`` takes of it, with the
    interval of that, model by model; nothing where the record lacks one of them, or an interval.
    """
    measure, lost_of = (tried.cost.measure, tried.cost.lost) if tried.cost else ("", ())
    for name in (n for n in _RANGES if UTILITY.get(n) == measure and len(lost_of) > 1):
        plain = utility[name].mean if name in utility else None
        if plain is not None:
            lost, half = interval(lost_of)
            now, (least, most) = plain - lost, _RANGES[name]
            ends = max(now - half, least), min(now + half, most), plain
            share = name is Name.ACCURACY
            yield name, Worth(now, *ends, share=share, unit="share of rows" if share else UTILITY[name])


def _column_of(tried: Defended) -> str:
    """The column of which most is found under a defence of an audit: how much has no interval there."""
    if tried.reason:
        return NO_ATTACK
    return f"{tried.column} (how much: {NO_SHARE})" if tried.column else f"no column ({NO_SHARE})"


def _effect(wanted: Wanted, tried: Defended, *, affordable: bool) -> str:
    """Whether a defence keeps to what its owner ``wanted`` of it."""
    if wanted.most_leak is None:
        aim = f"an error of at least {wanted.least_error:g}"
    else:
        aim = f"a leak of at most {100 * wanted.most_leak:g} % of a column"
    if not tried.keeps_to(wanted):
        return f"does not keep to {aim}"
    return f"keeps to {aim}" + (
        "" if affordable else f", but no cost of at most {wanted.most_loss:g} is shown"
    )


def _most_found(
    measured: Sequence[Finding], where: str, attacks: Iterable[str]
) -> tuple[Finding | None, str]:
    """The column that is found most in ``where``, beyond the guess, over seeds the worst one; or why none is,
    of the ``attacks`` that were scored. What is in 0.0 % of rows, as the table rounds it, is not found.
    """
    everything = [m for m in measured if _is_at(m, where)]
    here = [m for m in everything if statistic(m) == "worst case"]
    members = [m for m in everything if term(m) == LINKABILITY and m.state is State.FOUND]
    found = [m for m in here if round(m.value, 3) > 0] or members
    if found:
        return max(found, key=lambda m: m.value - m.guessed), ""
    if here:
        return None, NOTHING
    return None, NO_COLUMN if any(not is_blind(name) for name in attacks) else NO_ATTACK


def _is_at(m: Finding, where: str) -> bool:
    """Whether ``m`` is of the federation ``where``, of any seed."""
    return m.where == where or m.where.startswith(f"{where},")
