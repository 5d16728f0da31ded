"""An audit in plain words, for the terminal, and as one self-contained page."""

from __future__ import annotations

import json
from pathlib import Path

from vflens.experiments.audit import advice, charts
from vflens.experiments.audit.charts import KINDS, columns_table, share, tables, tells_table
from vflens.experiments.audit.given_run import of_given
from vflens.experiments.audit.record import AuditRecord
from vflens.experiments.outcome.words import counted_columns, in_own_unit, number, rows_of
from vflens.experiments.pages.page import plotly, templates, write_page
from vflens.experiments.results.results import BLIND_GUESSES
from vflens.names import all_of
from vflens.numerics.measures.rarity import RARE
from vflens.plugins.attack import installed_attack
from vflens.registry import ATTACKS
from vflens.storage.files import write_whole
from vflens.types import Document, Facts, Knowledge
from vflens.words import counted

_NAMED = 6  # columns in a sentence
_PATHS = (
    "Path restriction: the choices of one leaf per tree that fit what is released, and the values that they "
    "leave (Luo et al., 2021)."
)


def sentences(record: AuditRecord) -> list[str]:
    """The verdict. Of planned models: whether to join, how training is protected, which columns are found,
    the strongest attack; then equations, bounds and what they cover, and how well a number is predicted.

    Of a given one: whether to join, which columns are found, the error of each attack beside the blind guess
    with right branches, what was drawn, what its file tells.
    """
    first, found = advice.decision(record), columns_found(record)
    if record.is_given:
        return [first, found, *of_given(record)]
    figures = [_strongest(record), _equations(record), _bounds(record), *predicted(record)]
    return [first, advice.protection(record), found, *figures]


def predicted(record: AuditRecord) -> list[str]:
    """How well the planned models predict a known numeric label, in its unit, and what was assumed of it."""
    if not (record.label and record.real_labels):
        return []
    worth = {name: (figure.mean, figure.half) for name, figure in record.utility.items()}
    r2, alone = ("{} ± {}".format(*map(number, worth[name])) for name in ("r2", "r2_alone"))
    beside = f" ({alone} by the other party alone)" if record.real_others else ""
    return [
        f"On rows that did not train them the planned models predict {record.label.name} with an R² of "
        f"{r2}{beside}: to within ± {in_own_unit(worth['rmse'][0] or 0.0)} (root mean squared error, in its "
        "unit).",
        *filter(None, [record.label.assumed]),
    ]


def worst_cases(record: AuditRecord) -> list[str]:
    """A sentence for each worst case, and one on what counts as found."""
    if not record.worst_cases:
        return []
    widths = [f"{name} {in_own_unit(width)}" for name, width in record.tolerance.items()]
    more = ", …" if len(widths) > _NAMED else ""
    cases = [
        f"Worst case of {case.rows:,} {rows_of(case.scored_set)}: {case.words}. The most exposed 1 % of "
        f"them: mean squared error {number(case.exposed_mse)}."
        for case in record.worst_cases
    ]
    return [
        *cases,
        f"An answer counts as found where it is off by at most: {', '.join(widths[:_NAMED])}{more}.",
    ]


def left_out(record: AuditRecord) -> list[str]:
    """A sentence for each defence that could not be loaded."""
    return [f"Defence {name} is left out: {reason}." for name, reason in record.left_out.items()]


def failed(record: AuditRecord) -> list[str]:
    """A sentence for each attack that failed."""
    return [f"Attack {name} failed: {reason}." for name, reason in record.failed.items()]


def explained(record: AuditRecord) -> dict[str, str]:
    """Attack → what it does, and what it knows besides the model; the strongest first."""
    names = dict.fromkeys(a.attack for a in sorted(record.attacks, key=lambda a: a.mse))
    return {name: _explained(name, record) for name in names}


def _explained(attack: str, record: AuditRecord) -> str:
    summary = _PATHS if attack == "pra" else ATTACKS.summary(attack)
    knows = "" if record.is_given else _knows(attack, record.known_rows)
    return f"{summary} It knows {knows}." if knows else summary


def exposed_file(out: Path) -> Path:
    """Where the most exposed rows stand, beside the page ``out``: for the party alone."""
    return out.with_suffix(".exposed.json")


def write_exposed(exposed: Facts, out: Path) -> None:
    """Write the ids of the most ``exposed`` rows beside the page ``out``, for its owner alone.

    Raises:
        StorageError: they cannot be written.
    """
    write_whole(exposed_file(out), json.dumps(exposed).encode(), 0o600)


def write_audit(record: AuditRecord, out: Path) -> None:
    """Write the page to ``out``.

    Raises:
        StorageError: it cannot be written.
    """
    name = "given.html.j2" if record.is_given else "audit.html.j2"
    shown = {
        "sentences": sentences(record),
        "may_join": advice.may_join(record),
        "tables": tables(record),
        "columns_table": columns_table(record),
        "explained": explained(record),
        "worst_cases": worst_cases(record),
        "exposed_file": exposed_file(out).name,
        "tells": tells_table(record),
    }
    shown |= {} if record.is_given else _of_planned(record)
    write_page(out, templates(number=number).get_template(name).render(record=record, **shown))


def _of_planned(record: AuditRecord) -> Document:
    """What only the page of planned models shows."""
    return {
        "recommendation": advice.recommendation(record),
        "measure": advice.measure(record),
        "wanted": advice.wanted(record),
        "alarms": alarms(record),
        "left_out": [*left_out(record), *failed(record)],
        "blind_words": BLIND_GUESSES,
        "attacks_plot": charts.attacks_plot(record),
        "columns_plot": charts.columns_plot(record),
        "defenses_plot": charts.defenses_plot(record),
        "plotly": plotly(),
    }


def _equations(record: AuditRecord) -> str:
    d, m = len(record.columns), record.equations
    of = "a number" if record.label else counted(record.classes, "class")
    raw = ", audited by the outputs as they leave, without a softmax," if record.raw_outputs else ""
    what = "one-hot and other column" if record.categories else "column"
    given = (
        f"A model of {of}{raw} gives whoever knows its parameters {counted(m, 'equation')} about "
        f"your {counted(d, what)} with every prediction, even if training is secure"
    )
    if d <= m:
        return (
            f"{given}: enough to solve for all of them. Unless some repeat each other, or a defence acts, "
            "everything is recovered exactly."
        )
    return f"{given}."


def _bounds(record: AuditRecord) -> str:
    after, before = record.after_training, record.bounds
    if after:
        ls, half_star = (number(after[name].mse) for name in ("ls", "half_star"))
        begin = "Against your trained model the answers of least squares err by"
        errors = f"{begin} {ls} and those of half* by {half_star}"
    else:
        ls, half_star = (number(before[name].lower) for name in ("ls", "half_star"))
        begin = "For every model of full rank, the answers of least squares err by at least"
        errors = f"{begin} {ls} and those of half* by at least {half_star}"
    return (
        f"{errors} before they are clipped to the range of each column (mean squared error per column, "
        "columns scaled to [0, 1]). This bounds these two attacks and nothing stronger."
    )


def _strongest(record: AuditRecord) -> str:
    best, blind = record.strongest, record.blind_error
    over = f"{best.models} {KINDS[best.kind]}" if best.models > 1 else "rows"
    spread = f"{number(best.low)} to {number(best.high)} over {over}"
    knows = _knows(best.attack, record.known_rows)
    beside = f"{share(best.mse, blind)} of" if blind else "beside"
    who = best.attack + (f", which knows {knows}" if knows else "")
    return (
        f"The strongest attack here, {who}: its mean squared error over all columns is {number(best.mse)} "
        f"({spread}), {beside} that of the best blind guess ({BLIND_GUESSES[record.blind_guess]}, "
        f"{number(blind)})."
    )


def columns_found(record: AuditRecord) -> str:
    """How many columns are found and which not, and how many of the table's rows were read."""
    if not any(record.column_blind):
        return f"All columns are constant: there is nothing to protect. {rows_read(record)}"
    return f"{counted_columns(record.by_column)}. {rows_read(record)}"


def rows_read(record: AuditRecord) -> str:
    """How many of the table's rows the figures are from."""
    read, there = record.rows, record.table_rows
    if read == there:
        return f"Read: all {counted(there, 'row', ',')}."
    whole = counted(there, "row", ",")
    return f"Read: {read:,} of {whole}, drawn at random, with up to {RARE} of each rare value."


def _knows(attack: str, rows: int) -> str:
    """What ``attack`` knows besides the model, ``rows`` of the party's among it; "" of nothing."""
    plugin = installed_attack(attack)
    if plugin is None:
        return ""
    known = ["the messages of training"] if Knowledge.EMBEDDINGS in plugin.needs else []
    known += ["as many of your rows as fix an affine map"] if plugin.up_to_affine else []
    granted = plugin.needs & {Knowledge.MOMENTS, Knowledge.AUXILIARY}
    known += [f"{rows} of your rows"] if granted and rows else []
    known += ["the values your columns can take"] if Knowledge.METADATA in plugin.needs else []
    return all_of(known)


def alarms(record: AuditRecord) -> list[str]:
    """Sentences shown first: where theory and measurement disagree."""
    return [f"THEORY AND MEASUREMENT DISAGREE: {sentence}" for sentence in record.theory_disagreements]


def in_short(record: AuditRecord) -> list[str]:
    """What the terminal says first: whether to join and why, what failed, and what helps."""
    verdict = sentences(record)
    if record.is_given:
        return verdict
    more = *predicted(record), *failed(record), "", advice.recommendation(record)
    return [*alarms(record), *verdict[:3], *more]


def in_detail(record: AuditRecord) -> list[str]:
    """What each attack is, the strongest one, bounds, worst cases, and the defences left out."""
    attacks = [f"{name}: {does}" for name, does in explained(record).items()]
    bounds = [] if record.is_given else ["", *sentences(record)[3:6]]
    return [*attacks, *bounds, *worst_cases(record), *left_out(record)]
