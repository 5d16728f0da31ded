"""Sentences of a DPIA: the residual risk, what is declared, what is still to be."""

from collections.abc import Iterator, Mapping, Sequence

from vflens.experiments.evidence.declared import Declaration
from vflens.experiments.evidence.measured import SINGLING_OUT, rows, statistic, target, term, what
from vflens.experiments.outcome.decide import State
from vflens.experiments.outcome.finding import Finding, Quantity
from vflens.experiments.results.findings import ALARMS
from vflens.numerics.measures.advantage import exact
from vflens.words import counted

_TOO_FEW = "the rows are too few to say"
_SAID = {
    State.FOUND: "can find, beyond a blind guess",
    State.UNDECIDED: "may find, but {why}",
    State.NOT_FOUND: "takes at most 5 % of what a blind guess leaves open, by the attacks that ran",
}
_PEOPLE = {
    Quantity.WHOLE: "found with all their columns",
    Quantity.ALONE: "found with all their columns, as nobody else is",
}


def residual(measured: Sequence[Finding]) -> list[str]:
    """A sentence for each source, federation, recipient, target and state: broken ones first."""
    found: dict[tuple[str, str, str, State, str], list[str]] = {}
    for m in measured:
        key = (place(m), m.adversary, target(m), m.state, m.reason)
        of_rows = f", {rows(m)}" if term(m) == SINGLING_OUT else ""  # of training and of prediction rows
        found.setdefault(key, []).append(f"{what(m)} ({statistic(m)}{of_rows})")
    order = sorted(found, key=lambda key: (key[0], list(State).index(key[3])))
    return [
        f"{where}, {who} {_SAID[state].format(why=why or _TOO_FEW)}: {', '.join(found[key])} ({of})."
        for key in order
        for where, who, of, state, why in (key,)
    ] or ["Nothing was measured: nothing can be said of a residual risk."]


def place(m: Finding) -> str:
    """Its source and its federation, as a sentence begins."""
    text = f"{m.source}, {m.where}"
    return f"{text[:1].upper()}{text[1:]}"


def combined(measured: Sequence[Finding], declared: Declaration) -> list[str]:
    """How many of the declared people are singled out, and how likely one whom an attack names is a training
    row; nothing of what is not declared.
    """
    return [*_of_people(measured, declared), *_of_prior(measured, declared)]


def _of_people(measured: Sequence[Finding], declared: Declaration) -> Iterator[str]:
    if declared.people is None:
        return
    found = [m for m in measured if term(m) == SINGLING_OUT]
    for m in found:
        yield (
            f"{place(m)}, {m.adversary}: of {declared.people:,} people "
            f"{_people(m.low or 0.0, declared)} to {_people(m.high or 0.0, declared)} (95 % interval) are "
            f"{_PEOPLE[m.quantity]} (expected {_people(m.value, declared)}; by a blind guess "
            f"{_people(m.guessed, declared)}), if these are as those of the "
            f"{counted(m.rows, 'attacked row', ',')}."
        )
    if not found:
        yield (
            f"The declared number of people, {declared.people:,}, is combined with nothing: no whole rows "
            "were scored."
        )


def _of_prior(measured: Sequence[Finding], declared: Declaration) -> Iterator[str]:
    """Bayes' rule: π t/(π t + (1 − π) f) of those named are training rows, for the prior π, the share t of
    these that are named, and f of others. Each end takes those of both shares, at 1.25 % each.
    """
    prior = declared.prior
    if prior is None:
        return
    found = [m for m in measured if m.quantity is Quantity.NAMED]
    for m in found:
        t, alarms = exact(m.value, m.rows, 2), exact(ALARMS, m.rows, 2)
        low, at, high = (
            f"{100 * prior * true / (prior * true + (1 - prior) * false):.2g} %" if true else "0 %"
            for true, false in zip((t[0], m.value, t[1]), (alarms[1], ALARMS, alarms[0]), strict=True)
        )
        yield (
            f"{place(m)}, {m.adversary}: with the declared prior, {100 * prior:.2g} %, for a person to be a "
            f"training row, one whom {m.attack} names at {100 * ALARMS:g} % false alarms is one with {at} "
            f"({low} … {high}; {target(m)})."
        )
    if not found:
        yield (
            f"The declared prior, {100 * prior:.2g} %, is combined with nothing: no attack on membership was "
            "scored. What a recipient who knows more of a person could do was not tested."
        )


def _people(share: float, declared: Declaration) -> str:
    assert declared.people is not None
    return f"{share * declared.people:,.0f}"


def missing(declared: Declaration) -> list[str]:
    """What is to be declared, by the names of the fields."""
    return [f"Not declared: {words} (`{name}`)." for name, words in declared.missing.items()]


def who(declared: Declaration) -> Iterator[str]:
    """Who measured and who assessed, as declared: no folder names a person."""
    lines = declared_lines(declared)
    for name, task in (("ran_by", "Measured by"), ("assessor", "Assessed by")):
        sentence = f"{lines[name]}, as declared" if name in lines else f"nobody who is declared (`{name}`)"
        yield f"{task}: {sentence}."


def declared_lines(declared: Declaration) -> Mapping[str, str]:
    """What is declared, field by field."""
    found = {name: getattr(declared, name) for name in type(declared).model_fields}
    return {
        name: "; ".join(value)
        if isinstance(value, tuple)
        else f"{value:,}"
        if isinstance(value, int)
        else str(value)
        for name, value in found.items()
        if value is not None
    }
