"""Writes the scoreboard as Markdown: for each data set and federation the verdicts, then all figures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from textwrap import fill

from vflens.experiments.figures.fedadob.printed import BLACK_BOX_ERRORS, CAPS
from vflens.experiments.pages.cost import Cost, Use
from vflens.experiments.scoreboard.cells import COST
from vflens.experiments.scoreboard.grid import (
    ATTACKED,
    ATTACKED_OTHERWISE,
    COST_ROWS,
    FEDERATIONS,
    KNOWN_ROWS,
    MOST_WORK,
    ROWS,
    UNDEFENDED,
    Place,
    ScoreboardGrid,
)
from vflens.experiments.scoreboard.verdicts import (
    RULE,
    CellResult,
    over_seeds,
    summary,
    words,
)
from vflens.experiments.sweeps.pool import Rows
from vflens.numerics.measures.intervals import spread
from vflens.plugins.attack import installed_attack
from vflens.types import Facts

FEDADOB = "FedAdOb (Gu et al.)"
VAR = "VAR (Varasteh, arXiv:2302.05545), §V, text on Figure 4"


def published(data: str) -> Iterator[tuple[str, str, str]]:
    """What was measured on ``data``, the printed figure, and its source."""
    halves = {"bank": "0.17", "adult": "0.12"}
    if data in halves:
        yield "`half`, the blind guess, MSE per column of the whole data set", halves[data], VAR
    if data == "mnist":
        for (method, name), errors in BLACK_BOX_ERRORS.items():
            if name == "MNIST":
                yield f"`bmi` on {method}, MSE", f"{errors.bmi:.3f}", f"{FEDADOB}, Table III"
                yield f"`bgi` on {method}, MSE", f"{errors.bgi:.3f}", f"{FEDADOB}, Table III"
        for (attack, model, defense), cap in CAPS.items():
            if model == "LeNet-MNIST":
                what = f"{attack} against {defense}, LeNet: accuracy × error, mean over strengths"
                yield what, str(cap), f"{FEDADOB}, Table IV"


FAMILIES = {"features": "columns", "labels": "labels", "membership": "membership"}
_HEAD = """\
# Scoreboard

Every installed attack against every installed defence. `make scoreboard` writes this page.

- **What runs**: {rows} rows of each data set, {seeds} seeds; without attacks, for accuracy, gain and cost,
  {cost_rows} rows and {cost_seeds} seeds; all parties in one process. Attacks of vertical
  federations estimate {attacked}. The settings are small: the figures compare attacks and
  defences with each other. They bound nothing, and are not those of a tuned attack.
- **Training in the clear**: attacks may read what training sends. The adversary was granted much:
  parameters, mean and covariance, {known} rows and {known} labels; it has {known} rows of other people.
  The server of clients also gets single embeddings, gradients and candidates.
- **Defences** act at every party that holds rows where they can act, with the middle of the strengths
  that `vflens audit` tries: by default their default settings.
- **Attacks** have their defaults, with at most
  {work}.
- **Figures**: mean ± 95 % half width over seeds (Student's t). *MSE* is per column scaled to [0, 1];
  smaller is better for the attack. *R²* is after the best affine map; *accuracy* is the share of right
  labels, beside the most frequent class; *AUC* stands for two classes and for membership. Larger is
  better there.
- "–": no result; the reasons stand below each table.
- **Again**: all results stand in [scoreboard.parquet](scoreboard.parquet), each under a digest of its
  settings and of the code of its plug-ins. So an interrupted call resumes, and a new attack or defence
  costs its own runs only. Remove that file and the folder `.scoreboard` after a change of the protocol
  that changes results. Bank, adult and MNIST come from the folder `VFLENS_DATA`.

## The rule of the verdicts

{rule}
"""


@dataclass(frozen=True)
class Board:
    """The rows of one data set and federation."""

    data: str
    federation: str
    rows: Rows

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

    def accuracies(self, defense: str) -> list[float]:
        """Of the federation without attacks, seed by seed."""
        costs = (row for row in self.rows if (row["attack"], row["defense"]) == (COST, defense))
        return [row["accuracy"] for row in costs if row.get("accuracy") is not None]

    def cost(self, defense: str) -> Cost:
        """What ``defense`` costs."""
        uses: dict[str, dict[int, Use]] = {defense: {}, UNDEFENDED: {}}
        measure = "accuracy"
        for row in self.rows:
            if row["attack"] == COST and row["defense"] in uses and row.get("alone") is not None:
                uses[row["defense"]][row["seed"]] = Use(row["figure"], row["alone"])
                measure = row["measure"]
        return Cost.of(measure, uses[defense], uses[UNDEFENDED])

    @property
    def attacks(self) -> list[str]:
        """Those with a figure against some defence, family by family."""
        named = {attack for attacks in self.found.values() for attack in attacks}
        return sorted(named, key=lambda attack: ([*FAMILIES].index(estimated(attack)), attack))

    def on_grants_only(self, defense: str) -> bool:
        """Whether ``defense`` acted on what is granted, and on nothing else, in every run."""
        ran = [row.get("on_grants_only") for row in self.rows if row["defense"] == defense]
        found = [only for only in ran if only is not None]  # a refused run says nothing
        return bool(found) and all(found)

    def of_family(self, defense: str, family: str) -> list[CellResult]:
        """What the attacks of one family found against ``defense``."""
        return [f for a, f in self.found.get(defense, {}).items() if estimated(a) == family]

    def words(self, defense: str, family: str) -> str:
        """What attacks of one family achieve against ``defense``; see
        :func:`vflens.experiments.scoreboard.verdicts.words`.
        """
        undefended = None if defense == UNDEFENDED else self.of_family(UNDEFENDED, family)
        found = self.of_family(defense, family)
        return words(found, undefended, on_grants_only=self.on_grants_only(defense))

    def summary(self, family: str) -> str:
        """What attacks of one family achieve where nothing defends."""
        return summary(self.of_family(UNDEFENDED, family))


def estimated(attack: str) -> str:
    """What ``attack`` estimates: a key of :data:`FAMILIES`."""
    kind = installed_attack(attack)
    assert kind is not None
    return kind.estimates


def page(grid: ScoreboardGrid, rows: Rows, missing: Iterable[Place], absent: Facts) -> str:
    """The page of ``rows``.

    ``missing`` are federations in which attacks were not run, ``absent`` the data sets that are not here, and
    why. What lacks a seed is left out.
    """
    left = Counter((place.data, place.federation) for place in missing)
    work = ", ".join(f"{most} `{name}`" for name, most in MOST_WORK.items())
    few = "".join(f" ({name}: {n})" for name, n in ATTACKED.items())
    head = {"rows": ROWS, "seeds": grid.seeds, "known": KNOWN_ROWS, "work": work, "rule": RULE}
    head |= {"cost_rows": COST_ROWS, "cost_seeds": grid.cost_seeds}
    parts = [_HEAD.format(**head, attacked=f"{ATTACKED_OTHERWISE} of them{few}")]
    for data in grid.data:
        parts.append(f"## {data}\n")
        if data in absent:
            parts.append(f"Not run: {absent[data]}.\n")
        else:
            for name in grid.federations:
                own = [r for r in rows if (r["data"], r["federation"]) == (data, name)]
                parts.append(f"### {FEDERATIONS[name].title}, {data}\n")
                parts += _unfinished(left[data, name])
                parts += _sections(Board(data, name, _of_all_seeds(own, grid)))
        parts += _published(data)
    return "\n".join(parts)


def _unfinished(left: int) -> list[str]:
    said = (
        f"Not complete: {left} federations lack attacks or costs that were not run. "
        "What lacks a seed is left out.\n`make scoreboard` runs them.\n"
    )
    return [said] if left else []


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


def _sections(board: Board) -> Iterator[str]:
    if not board.found[UNDEFENDED]:
        return
    families = [f for f in FAMILIES if board.of_family(UNDEFENDED, f)]
    for family in families:
        yield _worst(board, family)
    heads = ["defence", "accuracy", "gain", "cost", *(FAMILIES[f] for f in families)]
    yield _table(heads, [_verdict(board, d, families) for d in board.found])
    yield "<details markdown><summary>All figures</summary>\n"
    defenses = list(board.found)
    heads = ["attack", "measure", "blind", *defenses]
    yield _table(heads, [_figures(board, attack, defenses) for attack in board.attacks])
    yield "</details>\n"
    yield from _reasons(board)


def _worst(board: Board, family: str) -> str:
    return _item(f"**{FAMILIES[family]}**: {board.summary(family)}.")


def _verdict(board: Board, defense: str, families: Sequence[str]) -> list[str]:
    cost = board.cost(defense)
    price = "–" if defense == UNDEFENDED else str(cost)
    hidden = [board.words(defense, family) for family in families]
    return [defense, spread(board.accuracies(defense)), spread(cost.gained), price, *hidden]


def _figures(board: Board, attack: str, defenses: Sequence[str]) -> list[str]:
    each = [board.found[defense].get(attack) for defense in defenses]
    some = next(f for f in each if f is not None)
    return [attack, some.measure, _known(some.blind), *map(_figure, each)]


def _known(figures: Sequence[float]) -> str:
    """Mean ± half width over the seeds that have a finite figure."""
    return spread([figure for figure in figures if math.isfinite(figure)])


def _figure(found: CellResult | None) -> str:
    if found is None:
        return "–"
    text = _known(found.figure)
    return f"**{text}**" if found.beats_blind else text


def _reasons(board: Board) -> Iterator[str]:
    """Why combinations have no result: a line per reason, with the attacks and defences it is true of."""
    refused: dict[str, dict[str, None]] = {}
    lacking: dict[str, dict[str, set[str]]] = {}
    for row in board.rows:
        if row.get("reason") and row["refused"]:
            refused.setdefault(_plain(row["reason"]), {})[row["defense"]] = None
        elif row.get("reason"):
            by_attack = lacking.setdefault(_plain(row["reason"]), {})
            by_attack.setdefault(row["attack"], set()).add(row["defense"])
    if not refused and not lacking:
        return
    yield "<details markdown><summary>Why there is no result</summary>\n"
    for reason, defenses in refused.items():
        yield _item(f"{_listed(defenses)}: {reason}")
    for reason, by_attack in lacking.items():
        met = set.union(*by_attack.values())
        where = "" if UNDEFENDED in met else f" with {_listed(sorted(met))}"
        yield _item(f"{_listed(by_attack)}{where}: {reason}")
    yield "\n</details>\n"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _item(text: str) -> str:
    return fill(f"- {text}", 118, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _plain(reason: str) -> str:
    return " ".join(reason.replace("<", "&lt;").replace("|", "\\|").split())


def _published(data: str) -> list[str]:
    found = [*published(data)]
    if not found:
        return []
    lead = "Other models, sizes and settings: they stand beside ours, and are no aim for them."
    return [f"### Published figures, {data}\n\n{lead}\n", _table(["what", "printed", "source"], found)]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
