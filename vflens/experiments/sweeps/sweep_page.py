"""The page of a sweep: a heat map of all cells, and for each defence its cost against its protection."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from vflens.experiments.outcome.finding import Quantity
from vflens.experiments.outcome.table import errors_of, quantity_of, where
from vflens.experiments.outcome.words import number, rows_of
from vflens.experiments.pages.drawing import Drawing
from vflens.experiments.pages.plots import Plot, Series, heat_map, lines
from vflens.experiments.pages.report_charts import percent
from vflens.experiments.results.utility import UTILITY
from vflens.experiments.sweeps.pool import Rows
from vflens.numerics.measures.intervals import Pooled, interval, pooled
from vflens.plugins.attack import up_to_renaming
from vflens.storage.metrics import Name
from vflens.types import Facts
from vflens.words import counted

UNDEFENDED = "undefended"
OF_ROUNDS = "horizontal."  # before the settings of [horizontal] that vary, as keys of rows

_MOST = 100  # plots on a page
_MOST_COLUMNS = 60  # of a heat map with numbers in its cells
Place: TypeAlias = tuple[str, float | None]  # a defence and its strength


class TradeOff(NamedTuple):
    """What a curve sets against each other: names in the rows and in words, and a blind guess's ``error``."""

    cost: str
    cost_in_words: str
    error: str
    error_in_words: str
    blind: float


_OF_BLIND = ("relative", "error / blind error", 1.0)
_WORTH = [TradeOff(name, UTILITY[name], *_OF_BLIND) for name in (Name.ACCURACY, Name.R2)]
_COSTS = (TradeOff("mean_kl", "mean KL between true and released scores, nats", *_OF_BLIND), *_WORTH)
# The ranking of labels, which a few positives do not hide: FedAdOb's Figure 6.
_RANKING = TradeOff("auc", "AUC of the federation", "label_auc", "AUC of the attack on labels", 0.5)


def called(defense: str, strength: float | None, between: str = " ") -> str:
    """A point of the sweep in words: a defence, and its strength if it has one."""
    return defense if defense == UNDEFENDED or strength is None else f"{defense}{between}{strength:g}"


class SubjectRows:
    """The rows of one subject, found by attack and point of the sweep."""

    def __init__(self, where: str, rows: Rows) -> None:
        self.where, self.rows = where, rows
        self.attacks = _named("attack", rows)
        self._at: dict[tuple[str | None, Place], Rows] = {}
        for r in rows:
            place = (r["defense"], r["strength"])
            for attack in (r["attack"], None):
                self._at.setdefault((attack, place), []).append(r)
        self.places = [place for attack, place in self._at if attack is None]
        self.defenses = [d for d in dict.fromkeys(d for d, _ in self.places) if d != UNDEFENDED]

    def strengths(self, defense: str) -> list[Place]:
        """The points of ``defense``."""
        return [p for p in self.places if p[0] == defense]

    def values(self, name: str, attack: str | None, place: Place) -> list[float]:
        """The finite figures called ``name`` of ``attack``, or of all attacks, at ``place``, seed by seed."""
        found = (r.get(name) for r in self._at.get((attack, place), ()))
        return [float(v) for v in found if v is not None and math.isfinite(v)]

    def pooled(self, attack: str, place: Place) -> Pooled:
        """The relative error of ``attack`` at ``place``, over seeds."""
        return pooled(errors_of(r) for r in self._at.get((attack, place), ()))

    def is_finite(self, name: str, place: Place) -> bool:
        """Whether no figure called ``name`` at ``place`` is infinite."""
        return all(math.isfinite(r[name]) for r in self._at.get((None, place), ()))


def drawing(rows: Rows, notes: Sequence[str]) -> Drawing:
    """The page of ``rows``: a heat map per target, scored set and thief of labels, a trade-off curve per
    defence and cost; of the first subjects, where there are many.
    """
    subjects: dict[str, Rows] = {}
    for r in rows:
        subjects.setdefault(attacked(r), []).append(r)
    shown = [plot for where, here in subjects.items() for plot in _plots(SubjectRows(where, here))]
    left_out = [f"{len(shown) - _MOST} more plots are left out: choose their axes above."] * (
        len(shown) > _MOST
    )
    seeds = len({r["seed"] for r in rows})
    lead = (
        f"{counted(seeds, 'seed')}: each draws its own split of rows, batches and noise. Errors are "
        "relative to the best blind guess on the "
        "same rows: 0 is exact, 1 no better than blind. The error of labels is the share named wrongly, "
        "their blind guess the most frequent class; the error of membership is 1 − AUC, that of whose row it "
        "is the share named wrongly. "
    )
    lead += "Intervals are 95 % over seeds (Student's t)." if seeds > 1 else "One seed gives no interval."
    clusters = [
        f"{attack} finds classes without names: the target gave each the name under which most rows are "
        "right."
        for attack in sorted(filter(up_to_renaming, {r["attack"] for r in rows}))
    ]
    text = [*clusters, *notes, *left_out, *_beyond_the_axis(rows)]
    return Drawing(rows, shown[:_MOST], lead, text)


def _plots(of: SubjectRows) -> Iterator[Plot]:
    yield _heat(f"{of.where}: error relative to the best blind guess", of)
    for defense in of.defenses:
        yield from _trade_offs(of, defense)
        yield from _theory(of, defense)
    yield from _compared(of)


def attacked(row: Facts) -> str:
    """The subject of a row: a party's columns, or its labels or training rows and the party that guesses
    them; with the settings that vary beside the defences.
    """
    thief, what, quantity = row.get("adversary"), row["target"], quantity_of(row)
    if quantity is Quantity.MEMBERS:
        what = f"membership in {what}, guessed by {thief}"
    elif quantity is Quantity.SITES:
        what = f"whose row it is, of {what}, named by {thief}"
    elif row.get("label"):
        what = f"{row['label']}, the label of {what}"
    elif thief:
        what = f"labels of {what}, named by {thief}"
    return f"{what}, {rows_of(row['scored_set'])}{of_variant(row)}"


def of_variant(row: Facts) -> str:
    """The settings of ``[horizontal]`` that vary, in words after a comma; "" where none does."""
    return "".join(f", {k.removeprefix(OF_ROUNDS)} = {v}" for k, v in row.items() if k.startswith(OF_ROUNDS))


def _beyond_the_axis(rows: Rows) -> list[str]:
    """A sentence on the strengths with infinite cost in nats."""
    found = dict.fromkeys(called(r["defense"], r["strength"]) for r in rows if r.get("mean_kl") == math.inf)
    if not found:
        return []
    return [
        "a released score of 0 makes the mean KL infinite, so these have no place on that axis: "
        f"{', '.join(found)}"
    ]


def _heat(title: str, of: SubjectRows) -> Plot:
    found = {a: [of.pooled(a, place) for place in of.places] for a in of.attacks}
    attacks = sorted(found, key=lambda a: min((c.mean for c in found[a] if c.seeds), default=0.0))
    cells = [found[a] for a in attacks]
    legible = len(of.places) <= _MOST_COLUMNS
    return heat_map(
        title,
        [called(d, s) for d, s in of.places],
        attacks,
        [[c.mean if math.isfinite(c.mean) else None for c in row] for row in cells],
        text=[[percent(c.mean) if c.seeds else "" for c in row] for row in cells] if legible else None,
        hover=[[_hover(c) for c in row] for row in cells],
        shares=True,
    )


def _hover(found: Pooled) -> str:
    nothing = f"of {counted(found.seeds + found.undefined, 'seed')}, {found.undefined} undefined"
    if not found.seeds:
        return nothing if found.undefined else "not scored"
    around = f" ± {number(found.half)}" if found.seeds > 1 else ""
    seeds = nothing if found.undefined else counted(found.seeds, "seed")
    return f"{number(found.mean)}{around} of blind, {seeds}"


def _trade_offs(of: SubjectRows, defense: str) -> Iterator[Plot]:
    """Error against each cost that all cells have, strength by strength, the undefended point first.

    A strength with infinite cost for some seed has no point: the mean over the others is not its cost.
    """
    for what in _COSTS:
        if _have(what.cost, of.rows):
            title = f"{of.where}, {defense}: what it buys and costs"
            yield _against(title, what, [_curve(a, of, a, defense, what) for a in of.attacks])


def _compared(of: SubjectRows) -> Iterator[Plot]:
    """For each attack all defences in one plot: error over accuracy or R²; of labels also their AUC over the
    federation's.
    """
    for attack in of.attacks:
        here = where(of.rows, attack=attack)
        of_several = [w for w in _WORTH if len(of.defenses) > 1 and _have(w.cost, here)]
        of_labels = [_RANKING] if of.defenses and _have("auc", here) and _have("label_auc", here) else []
        for what in of_several + of_labels:
            title = f"{of.where}, {attack}: the defences beside each other"
            yield _against(title, what, [_curve(d, of, attack, d, what) for d in of.defenses])


def _against(title: str, what: TradeOff, curves: Sequence[Series]) -> Plot:
    return lines(title, what.cost_in_words, what.error_in_words, curves, blind=what.blind)


def _named(name: str, rows: Rows) -> list[str]:
    return list(dict.fromkeys(r[name] for r in rows))


def _have(value: str, rows: Rows) -> bool:
    return all(r.get(value) is not None for r in rows)


def _curve(name: str, of: SubjectRows, attack: str, defense: str, what: TradeOff) -> Series:
    """Mean error over mean cost, strength by strength, the undefended point first."""
    places = [*of.strengths(UNDEFENDED), *of.strengths(defense)]
    reached = [p for p in places if of.values(what.error, attack, p) and of.is_finite(what.cost, p)]
    x = [interval(of.values(what.cost, attack, p))[0] for p in reached]
    found = [_error(of, attack, what.error, p) for p in reached]
    names = [called(d, s) for d, s in reached]
    return Series(name, x, [mean for mean, _ in found], [half for _, half in found], names=names)


def _error(of: SubjectRows, attack: str, name: str, place: Place) -> tuple[float, float]:
    return of.pooled(attack, place)[:2] if name == "relative" else interval(of.values(name, attack, place))


def _theory(of: SubjectRows, defense: str) -> Iterator[Plot]:
    """Measured errors and closed forms at each strength, for attacks that theory covers."""
    subject = SubjectRows(of.where, [r for r in of.rows if r.get("closed") is not None])
    covered = sorted(float(s) for _, s in subject.strengths(defense) if s is not None)
    series = []
    for attack in subject.attacks:
        strengths = [s for s in covered if subject.values("closed", attack, (defense, s))]
        for name, value in ((attack, "measured"), (f"{attack}, closed form", "closed")):
            found = [interval(subject.values(value, attack, (defense, s))) for s in strengths]
            if found:
                series.append(Series(name, strengths, [f[0] for f in found], [f[1] for f in found]))
    if series:
        yield lines(f"{of.where}, {defense}: measured and closed form", "strength", "MSE per feature", series)
