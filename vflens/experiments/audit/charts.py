"""The tables and plots of an audit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from itertools import cycle

from vflens.experiments.audit.bench import Wanted
from vflens.experiments.audit.outcomes import AttackOutcome
from vflens.experiments.audit.record import AuditRecord
from vflens.experiments.outcome import words
from vflens.experiments.outcome.finding import Finding
from vflens.experiments.outcome.words import in_own_unit, number
from vflens.experiments.pages.plots import GREY, axis, bar, by_column, dashes, plot, scatter
from vflens.types import Document, Phase
from vflens.words import counted

KINDS = {"random": "random models", "trained": "trained models", "given": "your trained model"}
_COLOURS = {"random": "#0072B2", "trained": "#D55E00", "given": "#D55E00"}


def tables(record: AuditRecord) -> list[list[tuple[str, ...]]]:
    """What attacks reach, and of planned models their bounds."""
    return [table(record)] if record.is_given else [table(record), bounds_table(record)]


def tells_table(record: AuditRecord) -> list[tuple[str, ...]]:
    """What the model's file holds beyond its predictions: field, and what it tells."""
    return [("field of the file", "tells"), *record.tells]


def table(record: AuditRecord) -> list[tuple[str, ...]]:
    """Attack, what it is against, error, range over models (of one model: over rows). Of planned models the
    closed form of unclipped answers, the share of the blind error; the strongest first. Of a given one the
    blind error, right branches, blind ones.
    """
    if record.is_given:
        header = ("attack", "reads", "rows", "MSE", "range", "blind", "right branches", "blind branches")
        return [header, *(_given_row(a, record) for a in record.attacks)]
    body = [
        (a.attack, _against(a, record), *_error(a), number(a.closed), share(a.mse, record.blind_error))
        for a in sorted(record.attacks, key=lambda a: a.mse)
    ]
    return [("attack", "against", "MSE", "range", "closed form, unclipped", "of blind"), *body]


def _given_row(a: AttackOutcome, record: AuditRecord) -> tuple[str, ...]:
    right = a.paths.right_branches if a.paths else None
    branches = record.trees.blind_branches if record.trees else None
    figures = map(number, (record.blind_error, right, branches))
    return (a.attack, a.released, str(a.rows), *_error(a), *figures)


def _error(a: AttackOutcome) -> tuple[str, str]:
    return number(a.mse), f"{number(a.low)} … {number(a.high)}"


def _against(a: AttackOutcome, record: AuditRecord) -> str:
    models = KINDS[a.kind] if a.kind == "given" else counted(a.models, f"{a.kind} model")
    training = "training " if a.phase is Phase.TRAIN else ""
    each = " each" if a.models > 1 else ""
    few = a.rows < (record.attacked_rows or 0)
    return f"{models}, {a.rows} {training}rows{each}" if few else models


def share(mse: float, blind: float) -> str:
    """An error beside a blind guess's, in per cent."""
    return f"{100 * mse / blind:.0f} %" if blind else "–"


def bounds_table(record: AuditRecord) -> list[tuple[str, ...]]:
    """Theorem 2 on the attacked rows: errors of least squares and half* only."""
    after = record.after_training
    body = [
        (
            f"{name}, unclipped",
            *map(number, (b.lower, b.upper, b.any_center, after[name].mse if after else None)),
        )
        for name, b in record.bounds.items()
    ]
    head = ("covers only", "any model ≥", "any model ≤", "around any point ≥", "your trained model")
    return [head, *body]


def columns_table(record: AuditRecord) -> list[tuple[str, ...]]:
    """Each column under the attack that takes most of it, in its own unit beside a blind guess, the most
    exposed first; after training with closed forms, with alphabets with entropies of the strongest attack; of
    a given model with the mean width of the values that each release leaves it.
    """
    given = record.is_given
    figures = _widths(record) if given else _closed_forms(record)
    rows = [
        (
            *(f.subject, words.reached(f), words.guessed(f), f"{100 * f.share:.0f} %"),
            (f.released if given else f.attack) if f.share else "–",
            *(_figure(figure_of(f, values, record), given=given) for values in figures.values()),
        )
        for f in record.by_column
    ]
    return [("column", "found", "blind guess", "taken", "from" if given else "attack", *figures), *rows]


def _figure(value: float | None, *, given: bool) -> str:
    return number(value) if value is None or not given else in_own_unit(value)


def _widths(record: AuditRecord) -> dict[str, Sequence[float | None]]:
    return {
        f"width, {a.released}": [w * unit for w, unit in zip(a.paths.widths, record.units, strict=True)]
        for a in record.attacks
        if a.paths
    }


def _closed_forms(record: AuditRecord) -> dict[str, Sequence[float | None]]:
    closed = {f"{name}, closed form": of.columns for name, of in record.after_training.items()}
    if all(bits is None for bits in record.column_entropy):
        return {**closed}
    left = {"H(X | X̂), bits": record.strongest.conditional_entropies}
    return {**closed, **left, "H(X), bits": record.column_entropy}


def figure_of(found: Finding, values: Sequence[float | None], record: AuditRecord) -> float | None:
    """That of a whole column among ``values`` by column; None of one-hot columns, of which each has one."""
    name = found.subject
    return None if name in record.categories else values[record.columns.index(name)]


def attacks_plot(record: AuditRecord) -> Document:
    """Error by attack, a mark with its range for each kind of model; blind error and bounds as lines."""
    attacks = list(dict.fromkeys(a.attack for a in sorted(record.attacks, key=lambda a: -a.mse)))
    data = list(_marks(record))
    lines = {"best blind guess": (record.blind_error, "dash")}
    if not record.trained:
        lines["bound on half*, unclipped"] = (record.bounds["half_star"].lower, "dot")
    for name, (at, dash) in lines.items():
        data.append(scatter("lines", name, [at] * len(attacks), attacks, line={"color": GREY, "dash": dash}))
    x = axis("MSE per column", range=[0, 1.5 * max(record.blind_error, record.strongest.high)])
    return plot("error by attack", data, 130 + 34 * len(attacks), xaxis=x, yaxis={"type": "category"})


def _marks(record: AuditRecord) -> Iterator[Document]:
    for kind in dict.fromkeys(a.kind for a in record.attacks):
        of_kind = [a for a in record.attacks if a.kind == kind]
        bars = {
            "array": [a.high - a.mse for a in of_kind],
            "arrayminus": [a.mse - a.low for a in of_kind],
        }
        x, y = [a.mse for a in of_kind], [a.attack for a in of_kind]
        look = {"error_x": {"type": "data", "symmetric": False, **bars}, "marker": _dots(kind)}
        yield scatter("markers", KINDS[kind], x, y, **look)


def _dots(kind: str) -> Document:
    return {"size": 11, "color": _COLOURS[kind]}


def columns_plot(record: AuditRecord) -> Document:
    """Error by column of the strongest attack; blind errors and closed forms as marks."""
    names, strongest = [escape(c) for c in record.columns], record.strongest
    data = [
        bar(strongest.attack, names, strongest.columns, "#D55E00"),
        dashes(names, record.column_blind),
    ]
    colours = cycle(("#0072B2", "#009E73"))
    for (name, closed), colour in zip(record.after_training.items(), colours, strict=False):
        marker = {"symbol": "x-thin-open", "size": 8, "color": colour}
        data.append(scatter("markers", f"closed form, {name}", names, closed.columns, marker=marker))
    return plot("error by column", data, 340, **by_column("MSE"))


def defenses_plot(record: AuditRecord) -> Document:
    """Largest leak of a column against cost, a point for each defence; what is wanted as lines."""
    measured = [(d, d.cost, d.leak) for d in record.defenses if d.cost and d.leak is not None]
    best = record.chosen[0] if record.chosen else None  # all names would cover each other
    points = scatter(
        "markers+text",
        "defence",
        [math.fsum(cost.lost) / len(cost.lost) for _, cost, _ in measured],
        [100 * leak for _, _, leak in measured],
        text=[escape(d.title) if d == best else "" for d, _, _ in measured],
        textposition="middle right",
        hovertext=[f"{escape(d.title)}: {d.price}" for d, _, _ in measured],
        marker=_dots("trained"),
    )
    axes = {"xaxis": axis("mean cost"), "yaxis": axis("largest leak of a column, %", range=[-4, 104])}
    return plot("defences", [points, *_corner(record.aims)], 380, **axes)


def _corner(wanted: Wanted) -> Iterator[Document]:
    """The corner that holds what is wanted; nothing of a threshold that is no leak."""
    if wanted.most_leak is not None:
        most, leak = wanted.most_loss, 100 * wanted.most_leak
        named, look = "what you asked for: below and left", {"color": GREY, "dash": "dash"}
        yield scatter("lines", named, [most, most, min(0.0, most)], [0, leak, leak], line=look)
