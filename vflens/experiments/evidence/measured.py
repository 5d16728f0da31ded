"""The terms of a DPIA for what each recipient finds."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from vflens.experiments.outcome import words
from vflens.experiments.outcome.finding import Finding, Findings, Quantity
from vflens.types import Document

INFERENCE, SINGLING_OUT, LINKABILITY = "inference", "singling out", "linkability"
RELEASE = "whoever knows the model and gets its predictions"
TRAFFIC = "whoever reads the messages of training"
ALL = "all columns"
_SAID = {
    Quantity.ALL: ALL,
    Quantity.LABELS: "labels",
    Quantity.MEMBERS: "membership (AUC)",
    Quantity.NAMED: "training rows named at 10 % false alarms",
    Quantity.WHOLE: "whole rows",
    Quantity.ALONE: "whole rows that fit nobody else",
}
_TERMS = {
    **dict.fromkeys((Quantity.MEMBERS, Quantity.NAMED), LINKABILITY),
    **dict.fromkeys((Quantity.WHOLE, Quantity.ALONE), SINGLING_OUT),
}
_AVERAGES = {Quantity.ERROR, Quantity.ALL, Quantity.LABELS, Quantity.MEMBERS, Quantity.SITES}
_LEFT_OUT = {Quantity.RIGHT, Quantity.MEAN}


def measured(evidence: Iterable[Findings]) -> Iterator[Finding]:
    """The worst attack on each subject, in the order of ``evidence``; none without an interval."""
    for e in evidence:
        here = (f for f in e.found if f.high is not None and f.quantity not in _LEFT_OUT)
        yield from replace(e, found=tuple(here)).best()


def term(f: Finding) -> str:
    """The regulators' word."""
    return _TERMS.get(f.quantity, INFERENCE)


def statistic(f: Finding) -> str:
    """Whether it is an average, or the worst case."""
    return "average" if f.quantity in _AVERAGES else "worst case"


def what(f: Finding) -> str:
    """What is found."""
    if f.quantity is Quantity.WITHIN:
        return f"{f.subject} within {words.in_own_unit(f.tolerance or 0.0)}"
    return _SAID.get(f.quantity, f.subject)


def target(f: Finding) -> str:
    """Whose it is, and for labels and pairs of which rows."""
    if f.quantity in (Quantity.LABELS, Quantity.MEMBERS):
        return words.subject(f).partition(" of ")[2]
    rows = "rows" if f.quantity in (Quantity.NAMED, Quantity.SITES) else "label" if f.label else "columns"
    return f"{rows} of {f.target}"


def rows(f: Finding) -> str:
    """The kind of rows."""
    if f.quantity is Quantity.NAMED:
        return "training rows among as many others"
    named = f.quantity in (Quantity.LABELS, Quantity.MEMBERS)
    return words.subject(f) if named else words.rows_of(f.scored_set)


def unit(f: Finding) -> str:
    """What the figure is in."""
    if f.is_share:
        return "share of rows"
    mean = "squared error, columns in [0, 1]"
    return mean if f.quantity is Quantity.ALL else f"root mean squared error, unit of {f.subject}"


def as_json(f: Finding) -> Document:
    """It under the keys that documents of version 0.2 have."""
    figure = {"value": f.value, "low": f.low, "high": f.high, "baseline": f.guessed}
    return {
        **{"where": f.where, "recipient": f.adversary, "target": target(f), "term": term(f)},
        **{"statistic": statistic(f), "what": what(f), "attack": f.attack, "rows": f.rows, "of": rows(f)},
        "figure": {**figure, "share": f.is_share, "unit": unit(f)},
        **{"state": f.state.value, "why": f.reason, "source": f.source, "deciding": f.rows_needed},
    }
