"""The first table of a DPIA: what each recipient finds of each column, in one of four words."""

from collections.abc import Sequence

from vflens.experiments.evidence.measured import LINKABILITY, SINGLING_OUT, statistic, term
from vflens.experiments.outcome.decide import State
from vflens.experiments.outcome.finding import MISLED, Finding, Quantity
from vflens.experiments.outcome.words import deciding, figures
from vflens.names import all_of
from vflens.words import counted

_TOGETHER = "columns together (mean squared error)"
#: Subjects that are no column, behind the columns.
_OTHERS = {SINGLING_OUT: "a whole person", LINKABILITY: "whether a person was trained on"}
_SITE = "which site a case is from"


def rows(measured: Sequence[Finding]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Head and rows: a line for each column, label and membership; a cell for each recipient. A cell has the
    worst state that an attack reached there, with its figure beside a blind guess's.
    """
    every = _without_random(measured)
    # Columns stand one by one, where they were scored: pictures' are not.
    found = [m for m in every if m.quantity is not Quantity.ALL] or every
    recipients = list(dict.fromkeys(map(_recipient, found)))
    subjects = list(dict.fromkeys(map(_subject, found)))
    subjects.sort(key=lambda subject: subject in (_SITE, *_OTHERS.values()))
    body = [
        (subject, *(_cell([m for m in found if _place(m) == (subject, who)]) for who in recipients))
        for subject in subjects
    ]
    return ("what", *recipients), body


def sentence(measured: Sequence[Finding]) -> str:
    """How much each recipient finds: "whoever reads training finds 6 of 7"."""
    head, body = rows(measured)
    counts = [sum(line[i].startswith(State.FOUND) for line in body) for i in range(1, len(head))]
    if not body:
        return "Nothing was measured: nothing can be said of a residual risk."
    first, *others = (f"{who} finds {count}" for who, count in zip(head[1:], counts, strict=True))
    listed = "; ".join([f"{first} of {counted(len(body), 'line')}", *others])
    missing = [subject for subject in _OTHERS.values() if subject not in {line[0] for line in body}]
    untested = f" Not tested, so without a line: {all_of(missing)}." if missing else ""
    return (
        f"{listed[:1].upper()}{listed[1:]}. A cell is found, not found, not decided, or not tested.{untested}"
    )


def _without_random(measured: Sequence[Finding]) -> list[Finding]:
    """Without random models where trained ones of the same source stand."""
    trained = {m.source for m in measured if "trained models" in m.target}
    return [m for m in measured if m.source not in trained or "random models" not in m.target]


def _place(m: Finding) -> tuple[str, str]:
    return _subject(m), _recipient(m)


def _recipient(m: Finding) -> str:
    """Who finds it, under which defences, of any seed."""
    return f"{m.adversary} ({m.where.partition(', seed')[0]})"


def _subject(m: Finding) -> str:
    words = {Quantity.ALL: _TOGETHER, Quantity.SITES: _SITE}
    return _OTHERS.get(term(m)) or words.get(m.quantity, m.subject)


def _cell(here: Sequence[Finding]) -> str:
    """The state of the worst of ``here``, and its figure beside a blind guess's; of two alike the error."""
    if not here:
        return State.UNTESTED
    worst = min(here, key=lambda m: (list(State).index(m.state), statistic(m) == "worst case"))
    value, _, guess = figures(worst)
    if worst.state is State.NOT_FOUND:
        return State.NOT_FOUND
    sign = "± " if worst.quantity is Quantity.ERROR else ""
    reached = value if value == "exactly" else f"{sign}{value}"
    return f"{worst.state} ({reached}; a guess {sign}{guess}){_opening(worst)}"


def _opening(m: Finding) -> str:
    """What would decide it; "" where nobody knows."""
    return f", {MISLED}" if m.reason == MISLED else deciding(m)
