"""The page of a sweep: a heat map of all cells, and for each defence its cost against its protection."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from vflens.experiments.figures import Drawing
from vflens.experiments.pages.plots import Plot, Series, heat_map, lines
from vflens.experiments.sweeps.pool import Rows
from vflens.plugins.attack import up_to_renaming
from vflens.types import Facts

UNDEFENDED = "undefended"
OF_ROUNDS = "horizontal."  # before the settings of [horizontal] that vary, as keys of rows


class TradeOff(NamedTuple):
    """What a curve sets against each other: names in the rows and in words, and a blind guess's ``error``."""

    cost: str
    cost_in_words: str
    error: str
    error_in_words: str
    blind: float


_OF_BLIND = ("relative", "error / blind error", 1.0)
_ACCURACY = TradeOff("accuracy", "accuracy", *_OF_BLIND)
_COSTS = (TradeOff("mean_kl", "mean KL between true and released scores, nats", *_OF_BLIND), _ACCURACY)
# The ranking of labels, which a few positives do not hide: FedAdOb's Figure 6.
_RANKING = TradeOff("auc", "AUC of the federation", "label_auc", "AUC of the attack on labels", 0.5)


def called(defense: str, strength: float | None, between: str = " ") -> str:
    """A point of the sweep in words: a defence, and its strength if it has one."""
    return defense if defense == UNDEFENDED or strength is None else f"{defense}{between}{strength:g}"


def drawing(rows: Rows, refused: Sequence[str]) -> Drawing:
    """The page of ``rows``: a heat map per target, scored set and thief of labels, a trade-off curve per
    defence and cost.
    """
    shown: list[Plot] = []
    for where in dict.fromkeys(attacked(r) for r in rows):
        here = [r for r in rows if attacked(r) == where]
        shown.append(_heat(f"{where}: error relative to the best blind guess", here))
        shown += [
            plot
            for defense in dict.fromkeys(r["defense"] for r in here if r["defense"] != UNDEFENDED)
            for plot in (*_trade_offs(where, defense, here), *_theory(where, defense, here))
        ]
        shown += _compared(where, here)
    seeds = len({r["seed"] for r in rows})
    lead = (
        f"{_counted(seeds)}: each draws its own split of rows, batches and noise. Errors are relative to the "
        "best blind guess on the "
        "same rows: 0 is exact, 1 no better than blind. The error of labels is the share named wrongly, "
        "their blind guess the most frequent class; the error of membership is 1 − AUC. "
    )
    lead += "Intervals are 95 % over seeds (Student's t)." if seeds > 1 else "One seed gives no interval."
    clusters = [
        f"{attack} finds classes without names: the target gave each the name under which most rows are "
        "right."
        for attack in sorted({r["attack"] for r in rows if up_to_renaming(r["attack"])})
    ]
    return Drawing(rows, shown, lead, [*clusters, *refused, *_beyond_the_axis(rows)])


def attacked(row: Facts) -> str:
    """The subject of a row: a party's columns, or its labels or training rows and the party that guesses
    them; with the settings that vary beside the defences.
    """
    thief, what = row.get("adversary"), row["target"]
    if row.get("membership_auc") is not None:
        what = f"membership in {what}, guessed by {thief}"
    elif thief:
        what = f"labels of {what}, named by {thief}"
    return f"{what}, {row['scored_set']} rows{of_variant(row)}"


def of_variant(row: Facts) -> str:
    """The settings of ``[horizontal]`` that vary, in words after a comma; "" where none does."""
    return "".join(f", {k.removeprefix(OF_ROUNDS)} = {v}" for k, v in row.items() if k.startswith(OF_ROUNDS))


def _counted(seeds: int) -> str:
    return f"{seeds} seed{'s' if seeds > 1 else ''}"


def _beyond_the_axis(rows: Rows) -> list[str]:
    """A sentence on the strengths with infinite cost in nats."""
    found = dict.fromkeys(called(r["defense"], r["strength"]) for r in rows if r.get("mean_kl") == math.inf)
    if not found:
        return []
    return [
        "a released score of 0 makes the mean KL infinite, so these have no place on that axis: "
        f"{', '.join(found)}"
    ]


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Mean and 95 % half width over seeds; 0 for one seed."""
    from scipy.stats import t

    n = len(values)
    mean = math.fsum(values) / n
    if n < 2:
        return mean, 0.0
    deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1))
    return mean, float(t.ppf(0.975, n - 1)) * deviation / math.sqrt(n)


def spread(values: Sequence[float], digits: int = 3) -> str:
    """Mean ± 95 % half width over seeds (Student's t); "–" of nothing."""
    if not values:
        return "–"
    mean, half = interval(values)
    return f"{mean:.{digits}f}" + (f" ± {half:.{digits}f}" if len(values) > 1 else "")


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
        [called(d, s) for d, s in columns],
        attacks,
        [[interval(c)[0] if c else None for c in row] for row in cells],
        text=[[f"{100 * interval(c)[0]:.0f} %" if c else "" for c in row] for row in cells],
        hover=[[_hover(c) if c else "not scored" for c in row] for row in cells],
        shares=True,
    )


def _of(rows: Rows, value: str, attack: str, place: tuple[str, float | None]) -> list[float]:
    return [
        float(r[value])
        for r in rows
        if r["attack"] == attack and (r["defense"], r["strength"]) == place and math.isfinite(r[value])
    ]


def _finite(rows: Rows, value: str, place: tuple[str, float | None]) -> bool:
    return all(math.isfinite(r[value]) for r in rows if (r["defense"], r["strength"]) == place)


def _hover(values: Sequence[float]) -> str:
    mean, half = interval(values)
    around = f" ± {half:.4f}" if len(values) > 1 else ""
    return f"{mean:.4f}{around} of blind, {_counted(len(values))}"


def _trade_offs(where: str, defense: str, rows: Rows) -> list[Plot]:
    """Error against each cost that all cells have, strength by strength, the undefended point first.

    A strength with infinite cost for some seed has no point: the mean over the others is not its cost.
    """
    return [
        lines(
            f"{where}, {defense}: what it buys and costs",
            what.cost_in_words,
            what.error_in_words,
            [_curve(attack, attack, defense, rows, what) for attack in _named("attack", rows)],
            blind=what.blind,
        )
        for what in _COSTS
        if _have(what.cost, rows)
    ]


def _compared(where: str, rows: Rows) -> list[Plot]:
    """For each attack all defences in one plot: error over accuracy; of labels also their AUC over the
    federation's.
    """
    defenses = [d for d in _named("defense", rows) if d != UNDEFENDED]
    shown = []
    for attack in _named("attack", rows):
        here = [r for r in rows if r["attack"] == attack]
        of_several = [_ACCURACY] if len(defenses) > 1 and _have("accuracy", here) else []
        of_labels = [_RANKING] if defenses and _have("auc", here) and _have("label_auc", here) else []
        for what in of_several + of_labels:
            curves = [_curve(d, attack, d, here, what) for d in defenses]
            title = f"{where}, {attack}: the defences beside each other"
            shown.append(lines(title, what.cost_in_words, what.error_in_words, curves, blind=what.blind))
    return shown


def _named(name: str, rows: Rows) -> list[str]:
    return list(dict.fromkeys(r[name] for r in rows))


def _have(value: str, rows: Rows) -> bool:
    return all(r.get(value) is not None for r in rows)


def _curve(name: str, attack: str, defense: str, rows: Rows, what: TradeOff) -> Series:
    """Mean error over mean cost, strength by strength, the undefended point first."""
    places: list[tuple[str, float | None]] = [(UNDEFENDED, 0.0)]
    places += list(dict.fromkeys((r["defense"], r["strength"]) for r in rows if r["defense"] == defense))
    reached = [p for p in places if _of(rows, what.error, attack, p) and _finite(rows, what.cost, p)]
    x = [interval(_of(rows, what.cost, attack, p))[0] for p in reached]
    errors = [interval(_of(rows, what.error, attack, p)) for p in reached]
    names = [called(d, s) for d, s in reached]
    return Series(name, x, [e[0] for e in errors], [e[1] for e in errors], names)


def _theory(where: str, defense: str, rows: Rows) -> list[Plot]:
    """Measured errors and closed forms at each strength, for attacks that theory covers."""
    covered = [
        r
        for r in rows
        if r["defense"] == defense and r.get("closed") is not None and r["strength"] is not None
    ]
    series = []
    for attack in dict.fromkeys(r["attack"] for r in covered):
        strengths = sorted({r["strength"] for r in covered if r["attack"] == attack})
        for name, value in ((attack, "mse"), (f"{attack}, closed form", "closed")):
            found = [interval(_of(covered, value, attack, (defense, s))) for s in strengths]
            series.append(Series(name, strengths, [f[0] for f in found], [f[1] for f in found]))
    if not series:
        return []
    return [lines(f"{where}, {defense}: measured and closed form", "strength", "MSE per feature", series)]
