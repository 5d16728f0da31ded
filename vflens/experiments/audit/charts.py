"""The plots of an audit's page."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape
from itertools import cycle

from vflens.experiments.pages.plots import GREY, axis, bar, by_column, dashes, plot, scatter
from vflens.experiments.results.titles import describe
from vflens.types import Document, Facts

KINDS = {"random": "random models", "trained": "trained models", "given": "your trained model"}
_COLOURS = {"random": "#0072B2", "trained": "#D55E00", "given": "#D55E00"}


def named(defended: Facts) -> str:
    """A measured defence with its settings."""
    return describe({"name": defended["defense"], **defended["settings"]})


def attacks_plot(found: Facts) -> Document:
    """Error by attack, a mark with its range for each kind of model; blind error and bounds as lines."""
    attacks = list(dict.fromkeys(a["attack"] for a in sorted(found["attacks"], key=lambda a: -a["mse"])))
    data = list(_marks(found))
    lines = {"best blind guess": (found["blind"][found["blind_guess"]], "dash")}
    if not found["trained"]:
        lines["bound on half*, unclipped"] = (found["bounds"]["half_star"]["lower"], "dot")
    for name, (at, dash) in lines.items():
        data.append(scatter("lines", name, [at] * len(attacks), attacks, line={"color": GREY, "dash": dash}))
    top = 1.5 * max(found["blind"][found["blind_guess"]], found["strongest"]["high"])
    x = axis("MSE per column", range=[0, top])
    return plot("error by attack", data, 130 + 34 * len(attacks), xaxis=x, yaxis={"type": "category"})


def _marks(found: Facts) -> Iterator[Document]:
    for kind in dict.fromkeys(a["kind"] for a in found["attacks"]):
        of_kind = [a for a in found["attacks"] if a["kind"] == kind]
        bars = {
            "array": [a["high"] - a["mse"] for a in of_kind],
            "arrayminus": [a["mse"] - a["low"] for a in of_kind],
        }
        x, y = [a["mse"] for a in of_kind], [a["attack"] for a in of_kind]
        look = {"error_x": {"type": "data", "symmetric": False, **bars}, "marker": _dots(kind)}
        yield scatter("markers", KINDS[kind], x, y, **look)


def _dots(kind: str) -> Document:
    return {"size": 11, "color": _COLOURS[kind]}


def columns_plot(found: Facts) -> Document:
    """Error by column of the strongest attack; blind errors and closed forms as marks."""
    names = [escape(c) for c in found["columns"]]
    strongest = found["strongest"]
    data = [
        bar(strongest["attack"], names, strongest["columns"], "#D55E00"),
        dashes(names, found["column_blind"]),
    ]
    colours = cycle(("#0072B2", "#009E73"))
    for (name, told), colour in zip(found["after_training"].items(), colours, strict=False):
        marker = {"symbol": "x-thin-open", "size": 8, "color": colour}
        data.append(scatter("markers", f"closed form, {name}", names, told["columns"], marker=marker))
    return plot("error by column", data, 340, **by_column("MSE"))


def defenses_plot(found: Facts) -> Document:
    """Largest leak of a column against cost, a point for each defence; what is wanted as lines."""
    measured = [d for d in found["defenses"] if d["mse"] is not None]
    names = [escape(named(d)) for d in measured]
    best = (
        escape(named(found["fitting"][0])) if found["fitting"] else None
    )  # all names would cover each other
    points = scatter(
        "markers+text",
        "defence",
        [math.fsum(d["cost"]["lost"]) / len(d["cost"]["lost"]) for d in measured],
        [100 * d["leak"] for d in measured],
        text=[name if name == best else "" for name in names],
        textposition="middle right",
        hovertext=[f"{name}: {d['price']}" for name, d in zip(names, measured, strict=True)],
        marker=_dots("trained"),
    )
    axes = {"xaxis": axis("mean cost"), "yaxis": axis("largest leak of a column, %", range=[-4, 104])}
    return plot("defences", [points, *_wanted(found["wanted"])], 380, **axes)


def _wanted(wanted: Facts) -> Iterator[Document]:
    """The corner that holds what is wanted; nothing of a threshold that is no leak."""
    if wanted["most_leak"] is not None:
        most, leak = wanted["most_loss"], 100 * wanted["most_leak"]
        words, look = "what you asked for: below and left", {"color": GREY, "dash": "dash"}
        yield scatter("lines", words, [most, most, min(0.0, most)], [0, leak, leak], line=look)
