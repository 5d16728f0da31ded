"""The only sentences about a finding."""

from __future__ import annotations

import math
from collections.abc import Sequence

from vflens.experiments.outcome.decide import State
from vflens.experiments.outcome.finding import Finding, Quantity
from vflens.names import all_of
from vflens.numerics.measures.advantage import exact, normal_quantile
from vflens.protocol.acts import BATCHES, SUMS
from vflens.types import Phase
from vflens.words import counted

_NAMED = 6  # columns in a sentence
_KINDS: dict[str, str] = {Phase.TRAIN: "training rows", Phase.PREDICT: "prediction rows"}
_TOGETHER = {Quantity.ALL, Quantity.LABELS}  # their subject is a word, no column
_ROUNDING = 1e-12  # of figures that are exactly 0 but for it


def in_own_unit(value: float) -> str:
    """Two significant digits, without powers of ten where they can be read: "38,000", "1.2", "0.012"."""
    if value == 0 or not 1e-4 <= abs(value) < 1e15:
        return f"{value:.2g}"
    digits = 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, digits):,.{max(0, digits)}f}"


def number(value: float | None) -> str:
    """A number as the papers print it: ".021", "1.234", "2.1e-06"; "0" of what rounding leaves, "–" for
    none, "∞" or "-∞" for infinite.
    """
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if 0 < abs(value) < _ROUNDING:
        return "0"
    if 0 < abs(value) < 0.0005:
        return f"{value:.1e}"
    return f"{value:.3f}".replace("0.", ".", 1) if abs(value) < 0.9995 else f"{value:.3f}"


def percent(share: float) -> str:
    """A share: "34 %", "0.4 %", "99.7 %"."""
    whole = 100 * share
    if whole and whole < 1:
        return f"{whole:.1g} %"
    return f"{whole:.1f} %" if 99 < whole < 99.95 else f"{whole:.0f} %"


def rows_of(scored_set: str) -> str:
    """Scored rows in words: "predict rows", "rows of round 0", "rows of the batches of round 0"."""
    kind, _, number = scored_set.rpartition("-")
    places = {"round": "round", BATCHES: "the batches of round", SUMS: "all clients in round"}
    return f"rows of {places[kind]} {number}" if kind in places else f"{scored_set} rows"


def subject(finding: Finding) -> str:
    """What a figure is of, and on which rows: "columns of passive, predict rows"."""
    if finding.quantity is Quantity.MEMBERS:
        return f"pairs of a training row of {finding.target} and another"
    if finding.quantity is Quantity.SITES:
        return f"{finding.subject}, of {finding.target}"
    rows = rows_of(finding.scored_set)
    if finding.quantity is Quantity.LABELS:
        rows = _KINDS.get(finding.scored_set, rows)
    what = finding.subject if finding.quantity in _TOGETHER else "columns"
    return f"{what} of {finding.target}, {rows}"


def figures(finding: Finding) -> tuple[str, str, str]:
    """The figure, its interval and a blind guess's, as a table has them; "exactly" but for rounding."""
    ends = finding.low, finding.high
    low, high, blind = (_plain(finding, value) for value in (*ends, finding.guessed))
    return "exactly" if finding.is_exact else _plain(finding, finding.value), f"{low} … {high}", blind


def _plain(finding: Finding, value: float | None) -> str:
    if value is None:
        return "–"
    return f"{100 * value:.1f} %" if finding.is_share else in_own_unit(value)


def scored(finding: Finding) -> str:
    """What was scored, with the interval over so many tries, the rows, and what guesses reach."""
    f, rows = finding, counted(finding.rows, "row", ",")
    if f.quantity is Quantity.WITHIN:
        low, high = exact(f.value, f.rows, f.tries)[0], exact(f.value, f.rows)[1]
        imputed = "" if f.imputation is None else f", imputation {_plain(f, f.imputation)}"
        return (
            f"{f.attack} finds {_plain(f, f.value)} ({_plain(f, low)} … {_plain(f, high)}) of {rows} "
            f"({rows_of(f.scored_set)} of {f.target}) to within {in_own_unit(f.tolerance or 0.0)}, a blind "
            f"guess {_plain(f, f.blind)}{imputed}"
        )
    if f.quantity in (Quantity.ERROR, Quantity.RIGHT):
        return _scored_column(f, rows)
    if f.is_share:
        low, high = exact(f.value, f.rows)
        return (
            f"{f.attack} is right in {_plain(f, f.value)} ({_plain(f, low)} … {_plain(f, high)}) of {rows} "
            f"({subject(f)}), a blind guess in {_plain(f, f.blind)}"
        )
    interval = "no interval" if f.half_width is None else f"± {number(f.half_width)}"
    return (
        f"{f.attack} errs by {number(f.value)} ({interval}) on {rows} ({subject(f)}), a blind guess by "
        f"{number(f.blind)}"
    )


def _scored_column(f: Finding, rows: str) -> str:
    """A column's right values or its error, with the interval over so many tries."""
    place = f"{rows} ({rows_of(f.scored_set)} of {f.target})"
    if f.is_share:
        low, high = exact(f.value, f.rows, f.tries)[0], exact(f.value, f.rows)[1]
        interval = f"{_plain(f, low)} … {_plain(f, high)}"
        verb, value, guess = "is right about", f"in {_plain(f, f.value)}", f"in {_plain(f, f.blind)}"
        return f"{f.attack} {verb} {f.subject} {value} ({interval}) of {place}, a blind guess {guess}"
    interval = "no interval"
    if f.half_width is not None:
        wider = f.half_width * normal_quantile(f.tries) / normal_quantile()
        interval = f"{_plain(f, f.low)} … {_plain(f, math.sqrt(f.value * f.value + wider))}"
    return (
        f"{f.attack} finds {f.subject} to within ± {_plain(f, f.value)} ({interval}; root mean squared "
        f"error) on {place}, a blind guess to within ± {_plain(f, f.blind)}"
    )


def anew(finding: Finding) -> str:
    """What training leaks beyond what the same attack finds of labels dealt anew; "" where it finds
    nothing, or nobody tried.
    """
    ends = {
        State.FOUND: "training leaks the rest",
        State.NOT_FOUND: "no leak of training beyond that",
        State.UNDECIDED: "whether training leaks more is not decided",
    }
    if finding.state is not State.FOUND or finding.beyond_anew not in ends:
        return ""
    control = percent(max(0.0, finding.anew or 0.0))
    return (
        f"it finds {percent(finding.share)} of what a guess leaves open, the same attack {control} after "
        f"labels are dealt anew: {ends[finding.beyond_anew]}"
    )


def reader(finding: Finding) -> str:
    """Who finds it, as a sentence begins."""
    if finding.scored_set == Phase.TRAIN:
        return "Whoever reads training"
    if finding.released:
        return f"Whoever gets the {finding.released}"
    return "Whoever knows the model and gets its predictions"


def reached(finding: Finding) -> str:
    """What the attack reaches; no figure where it is not better than a guess."""
    state = finding.state
    if state is State.NOT_FOUND:
        return "not better than a guess" if finding.varies else "it never varies"
    if state is State.UNTESTED:
        return state.value
    return _not_decided(finding) if state is State.UNDECIDED else error(finding)


def guessed(finding: Finding) -> str:
    """What the best blind guess reaches."""
    return _figure(finding, finding.blind)


def error(finding: Finding) -> str:
    """What the attack reaches, whatever is known of it."""
    return "exactly" if finding.is_exact else _figure(finding, finding.value)


def _figure(finding: Finding, value: float) -> str:
    if finding.is_share:
        return f"right in {percent(value)} of rows"
    return f"to within ± {in_own_unit(value)}" if finding.unit else f"error {value**2:.2g}"


def _not_decided(finding: Finding) -> str:
    what = "" if finding.varies else f", it hardly varies among {counted(finding.rows, 'row', ',')}"
    return f"not decided{what}{deciding(finding)}"


def deciding(finding: Finding, count: int | None = None) -> str:
    """How many rows would decide on ``finding``, ``count`` if given, and whether its table can; "" where
    nobody knows. A column that hardly varies waits for rows read, others for attacked ones.
    """
    count, there = finding.rows_needed if count is None else count, finding.there
    rows = counted(count, "attacked row" if finding.varies else "row", ",")
    cannot = f", more than the table's {there:,}: it cannot" if 0 < there < count else ""
    return f", {rows}{'' if finding.varies else ' read'} would decide{cannot}" if count else ""


def column(finding: Finding) -> str:
    """A column in a sentence: "age exactly, a blind guess to within ± 17"."""
    return f"{finding.subject} {reached(finding)}, a blind guess {guessed(finding)}"


def title(finding: Finding, who: str = "", whose: str = "") -> str:
    """Who reads what, how exactly, beside a guess: the first sentence of a page, of what is found alone.

    ``who`` names the adversary, as the sentence begins, and ``whose`` the target; of a model without parties
    neither.
    """
    who, what = who or reader(finding), f"{finding.subject}{f' at {whose}' if whose else ''}"
    if finding.is_exact:
        off = f"{in_own_unit(finding.blind)} off" if finding.unit else "wrong"
        return f"{who} finds everyone's {what} exactly; a guess is {off}."
    if finding.is_share:
        return f"{who} finds {what} in {percent(finding.value)} of rows; a guess in {percent(finding.blind)}."
    return f"{who} finds {what} {_figure(finding, finding.value)}; a guess {_figure(finding, finding.blind)}."


def counted_columns(findings: Sequence[Finding]) -> str:
    """How many columns are found, and which are not: "8 of 10 columns found; kosten and crp not"."""
    count = sum(f.state is State.FOUND for f in findings)
    missed = [f.subject for f in findings if f.state is State.NOT_FOUND]
    named = f"; {_listed(missed)} not" if missed and count else ""
    return f"{count} of {counted(len(findings), 'column')} found{named}{undecided(findings)}"


def undecided(findings: Sequence[Finding]) -> str:
    """Which columns are not decided: "; kosten and crp not decided"; "" where all are."""
    names = [f.subject for f in findings if f.state is State.UNDECIDED]
    return f"; {_listed(names)} not decided" if names else ""


def _listed(names: Sequence[str]) -> str:
    shown = list(names[:_NAMED])
    if len(names) > _NAMED:
        return f"{', '.join(shown)} and {len(names) - _NAMED} more"
    return all_of(shown)
