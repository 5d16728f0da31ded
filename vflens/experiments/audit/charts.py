"""The plots of an audit's page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import cycle
from typing import Any

from vflens.experiments.results.titles import describe
from vflens.types import Document, Facts

KINDS = {"random": "random models", "trained": "trained models", "given": "your trained model"}
_COLOURS = {"random": "#0072B2", "trained": "#D55E00", "given": "#D55E00"}
_FORMS = ("#0072B2", "#009E73")  # of closed forms
_GREY = "#808080"


def named(defended: Facts) -> str:
    """A measured defence with its settings."""
    return describe({"name": defended["defense"], **defended["settings"]})


def _plot(title: str, data: Sequence[Document], height: int, **layout: Any) -> Document:
    return {"title": title, "height": height, "spec": {"data": data, "layout": {"height": height, **layout}}}


def attacks_plot(found: Facts) -> Document:
    """Error by attack, a mark with its range for each kind of model; blind error and bounds as lines."""
    attacks = list(dict.fromkeys(a["attack"] for a in sorted(found["attacks"], key=lambda a: -a["mse"])))
    data = list(_marks(found))
    lines = {"best blind guess": (found["blind"][found["blind_guess"]], "dash")}
    if not found["trained"]:
        lines["bound on half*"] = (found["bounds"]["half_star"]["lower"], "dot")
    for name, (at, dash) in lines.items():
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": name,
                "x": [at] * len(attacks),
                "y": attacks,
                "line": {"color": _GREY, "dash": dash},
            }
        )
    top = 1.5 * max(found["blind"][found["blind_guess"]], found["strongest"]["high"])
    x = {"title": {"text": "MSE per column"}, "range": [0, top]}
    return _plot("error by attack", data, 130 + 34 * len(attacks), xaxis=x, yaxis={"type": "category"})


def _marks(found: Facts) -> Iterator[Document]:
    for kind in dict.fromkeys(a["kind"] for a in found["attacks"]):
        of_kind = [a for a in found["attacks"] if a["kind"] == kind]
        bars = {
            "array": [a["high"] - a["mse"] for a in of_kind],
            "arrayminus": [a["mse"] - a["low"] for a in of_kind],
        }
        yield {
            "type": "scatter",
            "mode": "markers",
            "name": KINDS[kind],
            "x": [a["mse"] for a in of_kind],
            "y": [a["attack"] for a in of_kind],
            "error_x": {"type": "data", "symmetric": False, **bars},
            "marker": {"size": 11, "color": _COLOURS[kind]},
        }


def columns_plot(found: Facts) -> Document:
    """Error by column of the strongest attack; blind errors and closed forms as marks."""
    names = [escape(c) for c in found["columns"]]
    bars = {
        "type": "bar",
        "name": found["strongest"]["attack"],
        "x": names,
        "y": found["strongest"]["columns"],
    }
    marks = {
        "type": "scatter",
        "mode": "markers",
        "name": "best blind guess",
        "x": names,
        "y": found["column_blind"],
    }
    marks["marker"] = {"symbol": "line-ew-open", "size": 12, "color": _GREY, "line": {"width": 2}}
    data = [{**bars, "marker": {"color": "#D55E00"}}, marks]
    data += [
        {
            "type": "scatter",
            "mode": "markers",
            "name": f"closed form, {name}",
            "x": names,
            "y": told["columns"],
            "marker": {"symbol": "x-thin-open", "size": 8, "color": colour},
        }
        for (name, told), colour in zip(
            found["after_training"].items(), cycle(("#0072B2", "#009E73")), strict=False
        )
    ]
    axes = {
        "yaxis": {"title": {"text": "MSE"}, "rangemode": "tozero"},
        "xaxis": {"type": "category", "showgrid": False},
    }
    return _plot("error by column", data, 340, **axes)


def defenses_plot(found: Facts) -> Document:
    """Error of the strongest attack against accuracy loss, a point for each defence."""
    measured = [d for d in found["defenses"] if d["mse"] is not None]
    names = [escape(named(d)) for d in measured]
    best = (
        escape(named(found["fitting"][0])) if found["fitting"] else None
    )  # all names would cover each other
    points = {
        "type": "scatter",
        "mode": "markers+text",
        "name": "defence",
        "x": [d["accuracy_loss"] for d in measured],
        "y": [d["mse"] for d in measured],
        "text": [name if name == best else "" for name in names],
        "textposition": "middle right",
        "hovertext": names,
        "marker": {"size": 11, "color": _COLOURS["trained"]},
    }
    wanted = found["wanted"]
    corner = {
        "type": "scatter",
        "mode": "lines",
        "name": "what you asked for: above and left",
        "x": [wanted["most_loss"], wanted["most_loss"], min([0.0, *(d["accuracy_loss"] for d in measured)])],
        "y": [max([wanted["least_error"], *(d["mse"] for d in measured)]), *[wanted["least_error"]] * 2],
        "line": {"color": _GREY, "dash": "dash"},
    }
    axes = {
        "xaxis": {"title": {"text": "accuracy loss"}},
        "yaxis": {"title": {"text": "error of the strongest attack"}},
    }
    return _plot("defences", [points, corner], 380, **axes)
