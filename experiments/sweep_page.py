"""What a sweep's page shows: a heat map over all cells, and what each defence costs for what it buys."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from experiments.cells import Rows
from experiments.figures import Drawing
from experiments.plots import Plot, Series, heat_map, lines

_COSTS = {"mean_kl": "mean KL between true and released scores, nats", "accuracy": "accuracy"}


def drawing(rows: Rows, refused: Sequence[str]) -> Drawing:
    """The page of ``rows``: per target and scored set a heat map, per defence and cost a trade-off curve."""
    shown: list[Plot] = []
    for target, scored_set in dict.fromkeys((r["target"], r["scored_set"]) for r in rows):
        here = [r for r in rows if (r["target"], r["scored_set"]) == (target, scored_set)]
        shown.append(_heat(f"{target}, {scored_set} rows: error relative to the best blind guess", here))
        shown += [
            plot
            for defense in dict.fromkeys(r["defense"] for r in here if r["defense"] != "undefended")
            for plot in (*_trade_offs(defense, here), *_theory(defense, here))
        ]
    seeds = len({r["seed"] for r in rows})
    lead = (
        f"{seeds} seeds: each draws its own split of rows, batches and noise. Errors are relative to the best blind guess on the "
        "same rows: 0 is exact, 1 no better than blind. Intervals are 95 % over seeds (Student's t)."
    )
    assumed = "Assumes secure training. All parties ran in one process: isolation was a convention."
    return Drawing(rows, shown, lead, [assumed, *refused])


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Mean and 95 % half width over seeds; 0 for one seed."""
    from scipy.stats import t

    n = len(values)
    mean = math.fsum(values) / n
    if n < 2:
        return mean, 0.0
    deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1))
    return mean, float(t.ppf(0.975, n - 1)) * deviation / math.sqrt(n)


def _heat(title: str, rows: Rows) -> Plot:
    columns = list(dict.fromkeys((r["defense"], r["strength"]) for r in rows))
    found = {
        attack: {place: _of(rows, "relative", attack, place) for place in columns}
        for attack in dict.fromkeys(r["attack"] for r in rows)
    }
    attacks = sorted(found, key=lambda a: min((interval(v)[0] for v in found[a].values() if v), default=0.0))
    cells = [[found[a][place] for place in columns] for a in attacks]
    return heat_map(
        title,
        [d if d == "undefended" else f"{d} {s:g}" for d, s in columns],
        attacks,
        [[min(interval(c)[0], 1.5) if c else None for c in row] for row in cells],
        text=[[f"{100 * interval(c)[0]:.0f} %" if c else "" for c in row] for row in cells],
        hover=[[_hover(c) if c else "not scored" for c in row] for row in cells],
    )


def _of(rows: Rows, value: str, attack: str, place: tuple[str, float]) -> list[float]:
    return [
        float(r[value])
        for r in rows
        if r["attack"] == attack and (r["defense"], r["strength"]) == place and math.isfinite(r[value])
    ]


def _hover(values: Sequence[float]) -> str:
    mean, half = interval(values)
    return f"{mean:.4f} ± {half:.4f} of blind, {len(values)} seeds"


def _trade_offs(defense: str, rows: Rows) -> list[Plot]:
    """Error against each cost that all cells know, strength by strength, the undefended point first."""
    places = [("undefended", 0.0)]
    places += list(dict.fromkeys((r["defense"], r["strength"]) for r in rows if r["defense"] == defense))
    attacks = list(dict.fromkeys(r["attack"] for r in rows))
    shown = []
    for cost, name in _COSTS.items():
        if not all(cost in r and r[cost] is not None for r in rows):
            continue
        series = []
        for attack in attacks:
            points = [(_of(rows, cost, attack, p), _of(rows, "relative", attack, p)) for p in places]
            points = [p for p in points if p[0] and p[1]]
            errors: list[Any] = [interval(p[1]) for p in points]
            x = [interval(p[0])[0] for p in points]
            series.append(Series(attack, x, [e[0] for e in errors], [e[1] for e in errors]))
        shown.append(lines(f"{defense}: what it buys and costs", name, "error / blind error", series))
    return shown


def _theory(defense: str, rows: Rows) -> list[Plot]:
    """Measured errors beside their closed forms at each strength, of the attacks that theory covers."""
    covered = [r for r in rows if r["defense"] == defense and r.get("closed") is not None]
    series = []
    for attack in dict.fromkeys(r["attack"] for r in covered):
        strengths = sorted({r["strength"] for r in covered if r["attack"] == attack})
        for name, value in ((attack, "mse"), (f"{attack}, closed form", "closed")):
            found = [interval(_of(covered, value, attack, (defense, s))) for s in strengths]
            series.append(Series(name, strengths, [f[0] for f in found], [f[1] for f in found]))
    if not series:
        return []
    return [lines(f"{defense}: measured and closed form", "strength", "MSE per feature", series)]
