"""The kept rows of one section of the scoreboard, by defence and attack, and what they lack."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from vflens.experiments.outcome.table import where
from vflens.experiments.pages.cost import Cost, Use
from vflens.experiments.scoreboard.grid import FEDERATIONS, UNDEFENDED, ScoreboardGrid
from vflens.experiments.scoreboard.keys import COST
from vflens.experiments.scoreboard.kinds import kind_of
from vflens.experiments.scoreboard.verdicts import CellResult, over_seeds, words
from vflens.experiments.sweeps.pool import Rows

FAMILIES = {
    "features": "columns",
    "means": "column means",
    "labels": "labels",
    "membership": "membership",
    "source": "source",
}


@dataclass(frozen=True)
class Board:
    """The rows of one data set and federation."""

    data: str
    federation: str
    rows: Rows

    @property
    def title(self) -> str:
        """The federation and the data, in words."""
        return f"{FEDERATIONS[self.federation].title}, {self.data}"

    @cached_property
    def by_defense(self) -> Mapping[str, Rows]:
        """Defence → its rows, read once: a page asks for each several times."""
        grouped = defaultdict[str, Rows](list)
        for row in self.rows:
            grouped[row["defense"]].append(row)
        return grouped

    @cached_property
    def found(self) -> dict[str, dict[str, CellResult]]:
        """Defence → attack → what it found; the undefended federation is among them."""
        grouped: dict[tuple[str, str], Rows] = {}
        for row in self.rows:
            if row.get("blind") is not None:
                grouped.setdefault((row["defense"], row["attack"]), []).append(row)
        boards: dict[str, dict[str, CellResult]] = {UNDEFENDED: {}}
        for (defense, attack), rows in sorted(grouped.items()):
            found = over_seeds(rows)
            if found is not None:
                boards.setdefault(defense, {})[attack] = found
        return boards

    def cost(self, defense: str) -> Cost:
        """What ``defense`` costs."""
        uses: dict[str, dict[int, Use]] = {defense: {}, UNDEFENDED: {}}
        measure = "accuracy"
        for name, of in uses.items():
            for row in where(self.by_defense[name], attack=COST):
                if row.get("alone") is not None:
                    of[row["seed"]], measure = Use(row["figure"], row["alone"]), row["measure"]
        return Cost.of(measure, uses[defense], uses[UNDEFENDED])

    def on_grants_only(self, defense: str) -> bool:
        """Whether ``defense`` acted on what is granted, and on nothing else, in every run."""
        ran = [row.get("on_grants_only") for row in self.by_defense[defense]]
        found = [only for only in ran if only is not None]  # a refused run says nothing
        return bool(found) and all(found)

    def of_family(self, defense: str, family: str) -> list[CellResult]:
        """What the attacks of one family found against ``defense``."""
        return [f for f in self.found.get(defense, {}).values() if f.family == family]

    def leak(self, defense: str, family: str) -> CellResult | None:
        """The attack of one family that errs least behind ``defense``, of those with results enough."""
        decided = (f for f in self.of_family(defense, family) if f.is_decided)
        return min(decided, key=lambda f: f.mean, default=None)

    def words(self, defense: str, family: str) -> str:
        """What attacks of one family achieve against ``defense``; see
        :func:`vflens.experiments.scoreboard.verdicts.words`.
        """
        undefended = None if defense == UNDEFENDED else self.of_family(UNDEFENDED, family)
        found = self.of_family(defense, family)
        missing = [text for a, text in self._without_result(defense).items() if estimated(a) == family]
        return words(found, undefended, on_grants_only=self.on_grants_only(defense), missing=missing)

    def _without_result(self, defense: str) -> dict[str, str]:
        """The attacks that are made for ``defense`` and of which there is no result, in words."""
        made_for = FEDERATIONS[self.federation].made_for(defense)
        refused = {row["attack"] for row in self.by_defense[defense] if row.get("reason")}
        return {
            attack: f"{attack}, which cannot run here" if attack in refused else attack
            for attack in made_for
            if attack not in self.found.get(defense, {})
        }


def estimated(attack: str) -> str:
    """What ``attack`` estimates: a key of :data:`FAMILIES`."""
    kind = kind_of(attack)
    assert kind is not None
    return kind.estimates


def boards(rows: Rows, grid: ScoreboardGrid) -> list[Board]:
    """The sections of ``grid``, each with its ``rows`` that have all seeds."""
    own: dict[tuple[str, str], Rows] = {(data, name): [] for name, data in grid.sections()}
    for row in rows:
        own[row["data"], row["federation"]].append(row)
    return [Board(*section, _of_all_seeds(found, grid)) for section, found in own.items()]


def _of_all_seeds(rows: Rows, grid: ScoreboardGrid) -> Rows:
    """The rows of each attack on each defence, and of each cost, of which all seeds are there."""
    found: dict[tuple[str, str], set[int]] = {}
    for row in rows:
        found.setdefault((row["defense"], row["attack"]), set()).add(row["seed"])
    seeds = {COST: grid.cost_seeds}
    return [
        row
        for row in rows
        if len(found[row["defense"], row["attack"]]) == seeds.get(row["attack"], grid.seeds)
    ]
