"""The certificate as one offline page: the trade-off, columns before and after, unprotected facts."""

from collections.abc import Iterator
from dataclasses import replace
from html import escape
from typing import Any, cast

import numpy as np

from vflens.experiments.pages.page import plotly, templates
from vflens.experiments.pages.plots import axis, plot, scatter
from vflens.experiments.release.passes import Effect
from vflens.table_noise.bounds import bounds
from vflens.table_noise.correlated import Correlated
from vflens.table_noise.mechanisms import Mechanism
from vflens.table_noise.moments import TableMoments
from vflens.types import Document

_BOUND, _RELEASED, _LINEAR, _BEFORE = "#0072B2", "#009E73", "#D55E00", "#808080"
_DECADES, _POINTS, _WIDE = 4, 25, 100


def render(facts: Document, mechanism: Mechanism, moments: TableMoments, effect: Effect) -> str:
    """The page of the certificate ``facts``."""
    return (
        templates(percent=_unbroken, short=_short)
        .get_template("release.html.j2")
        .render(
            facts=facts,
            headline=headline(facts),
            trade_off=_trade_off(mechanism, moments),
            distributions=list(_distributions(facts["columns"], effect)),
            plotly=plotly(),
        )
    )


def headline(facts: Document) -> str:
    """The certificate in one sentence: what the noise does not prevent, and the bound."""
    columns = facts["cramer_rao"]["per_feature"]
    known = [c for c in columns if c["linear_r2"] is not None]
    bound = (
        f"a row's squared error is at least {facts['cramer_rao']['min_row']:.4g} for locally unbiased "
        "estimators"
        f" ({_percent(facts['cramer_rao']['share_of_total_variance'])} of a row's variance on average)"
    )
    if not known:
        return f"{bound[0].upper()}{bound[1:]}."
    worst = max(known, key=lambda c: c["linear_r2"])
    explained = f"{_percent(worst['linear_r2'])} of {worst['column']!r}"
    return f"Who knows mean and covariance still explains {explained}; {bound}."


def _unbroken(share: float | None) -> str:
    """A percentage without line breaks."""
    return _percent(share).replace(" ", "\N{NO-BREAK SPACE}")


def _short(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _percent(share: float | None) -> str:
    if share is None:
        return "–"
    return f"{100 * share:.3g} %" if share < 0.99 or share >= 1 else f"{min(100 * share, 99.9999):.6g} %"


def _trade_off(mechanism: Mechanism, moments: TableMoments) -> Document:
    """Three errors as shares of a row's variance against the size of the noise; a mark shows this release."""
    field = "m" if isinstance(mechanism, Correlated) else "lam"
    chosen = getattr(mechanism, field)
    points = _POINTS if mechanism.width <= _WIDE else 9
    sizes = chosen * np.logspace(-_DECADES, _DECADES, points)
    whole = float(np.trace(moments.covariance)) or 1.0
    curves = [bounds(replace(cast(Any, mechanism), **{field: size}), moments) for size in sizes.tolist()]
    lines = {
        "error of the released row": (_RELEASED, [c.released.sum() / whole for c in curves]),
        "Cramér–Rao bound, unbiased estimators": (_BOUND, [c.cramer_rao.sum() / whole for c in curves]),
        "best linear estimate, mean and covariance known": (
            _LINEAR,
            [c.linear.sum() / whole for c in curves],
        ),
    }
    data = [
        scatter("lines", name, sizes.tolist(), [float(v) for v in y], line={"color": colour, "width": 2})
        for name, (colour, y) in lines.items()
    ]
    now = [float(y[points // 2]) for _, y in lines.values()]
    marker = {"size": 11, "symbol": "diamond", "color": [colour for colour, _ in lines.values()]}
    data.append(scatter("markers", "this release", [chosen] * 3, now, marker=marker))
    letter = "m" if field == "m" else "λ"
    layout = {
        "xaxis": axis(letter, type="log", exponentformat="power"),
        "yaxis": axis("share of a row's variance", type="log", exponentformat="power"),
    }
    return plot(f"Errors against {letter}; a diamond is this release", data, 380, **layout)


def _distributions(columns: list[str], effect: Effect) -> Iterator[Document]:
    for name, edges, before, after in zip(columns, effect.edges, effect.before, effect.after, strict=False):
        middles = ((edges[1:] + edges[:-1]) / 2).tolist()
        shares = {"before": (before, _BEFORE), "after": (after, _RELEASED)}
        data = [
            scatter(
                "lines",
                when,
                middles,
                (counts / max(1, effect.drawn)).tolist(),
                line={"shape": "hvh", "color": colour, "width": 1.5},
                fill="tozeroy",
            )
            for when, (counts, colour) in shares.items()
        ]
        layout = {"yaxis": axis("share of rows", rangemode="tozero"), "xaxis": axis(escape(name))}
        yield plot(name, data, 190, **layout)
