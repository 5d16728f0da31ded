"""The committed page by another route: with pandas from the Parquet file, by the words of its rule."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest
from scipy import stats

from vflens.experiments.scoreboard.board import boards
from vflens.experiments.scoreboard.explorer import verdicts as hiding
from vflens.experiments.scoreboard.grid import ScoreboardGrid
from vflens.experiments.scoreboard.tuned import is_apart
from vflens.storage.arrow import parquet_rows

pytestmark = pytest.mark.facts  # the file is of a published run
DOCS = Path(__file__).parents[4] / "docs"
TABLES = {"Vertical": ("vertical-lr", "vertical-split"), "Horizontal": ("horizontal",)}
CELL = ["federation", "data", "defense", "attack"]


class Error(NamedTuple):
    mean: float
    half: float


@cache
def page() -> str:
    return (DOCS / "scoreboard.md").read_text()


@cache
def errors() -> dict[tuple[str, ...], Error]:
    """Federation, data, defence and attack → the relative error, of those with five finite seeds."""
    rows = pd.read_parquet(DOCS / "scoreboard.parquet").dropna(subset=["blind", "figure"])
    rows = rows[rows.attack != "cost"]
    less_is_better = rows.measure.isin(["MSE", "distance"])
    for name in ("figure", "blind"):
        rows[name] = rows[name].where(less_is_better, 1 - rows[name])
    seeds = rows.groupby([*CELL, "rows", "seed"])[["figure", "blind"]].mean()  # over targets
    seeds = seeds[(seeds.figure != 0) | (seeds.blind != 0)]
    found: dict[tuple[str, ...], Error] = {}
    for key, own in seeds.groupby(level=[*CELL, "rows"]):
        if len(own) == 5 and own.blind.sum():
            one = _relative(own)
            cell = tuple(key[:4])
            found[cell] = min(found.get(cell, one), one)
    return found


def _relative(seeds: Any) -> Error:
    """Σ error / Σ blind, and Student's interval of the residuals around it over the mean blind error."""
    mean = seeds.figure.sum() / seeds.blind.sum()
    residuals = (seeds.figure - mean * seeds.blind) / seeds.blind.mean()
    return Error(mean, stats.t.ppf(0.975, 4) * residuals.std(ddof=1) / 5**0.5)


def rank_table(threat: str) -> list[tuple[str, str, int, str]]:
    """The page's lines: attack, what it estimates, rank, relative error."""
    text = page().partition(f"### {threat}\n")[2].partition("\n#")[0]
    cells = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [(c[0], c[1], int(c[2]), c[3]) for c in cells[2:]]


@pytest.mark.parametrize(
    "threat",
    [
        f"{setting}, {granted}"
        for setting in TABLES
        for granted in ("nothing granted", "with what is granted")
    ],
)
def test_ranks_and_relative_errors_are_those_of_the_file(threat: str) -> None:
    federations = TABLES[threat.partition(",")[0]]
    lines = rank_table(threat)
    means: dict[tuple[str, str], float] = {}
    for attack, kind, _, sentence in lines:
        plain = [
            e for (f, _, d, a), e in errors().items() if f in federations and (d, a) == ("no defence", attack)
        ]
        mean = sum(e.mean for e in plain) / len(plain)
        half = sum(e.half**2 for e in plain) ** 0.5 / len(plain)
        assert sentence == f"{mean:.2f} ± {half:.2f}", attack
        means[attack, kind] = mean
    for attack, kind, rank, _ in lines:
        rivals = [mean for (_, of), mean in means.items() if of == kind]
        assert rank == 1 + sum(mean < means[attack, kind] - 1e-9 for mean in rivals), attack
    assert len(lines) >= 6


def verdicts() -> list[tuple[str, str, str]]:
    """Defence, verdict on columns and on labels, of logistic regression on bank, on the page of --page."""
    rows = parquet_rows(DOCS / "scoreboard.parquet")
    rows = [r for r in rows if (r["data"], r["federation"]) == ("bank", "vertical-lr") and not is_apart(r)]
    (board,) = boards(rows, ScoreboardGrid(("bank",), ("vertical-lr",)))
    table = hiding(board, {defense: board.cost(defense) for defense in board.found})
    at = [*table.heads].index("columns"), [*table.heads].index("labels")
    return [(line[0], line[at[0]], line[at[1]]) for line in table.rows]


def test_verdicts_and_their_intervals_follow_from_the_file() -> None:
    sentence = r"hides (nothing|part|nothing or part) \((\w+), (-?[\d.]+) ± ([\d.]+)\)"
    checked = []
    before = dict(zip(("columns", "labels"), verdicts()[0][1:], strict=True))
    for defense, *words in verdicts()[1:]:
        for kind, verdict in zip(("columns", "labels"), words, strict=True):
            facts = re.fullmatch(sentence, verdict)
            if facts is None:
                continue
            now = errors()["vertical-lr", "bank", defense, facts[2]]
            was = errors()["vertical-lr", "bank", "no defence", before[kind].split()[0]]
            assert (facts[3], facts[4]) == (f"{now.mean:.2f}", f"{now.half:.2f}"), defense
            larger, half = now.mean - was.mean, (now.half**2 + was.half**2) ** 0.5
            surely = "part" if larger - half > 0.1 else "nothing or part"
            assert facts[1] == ("nothing" if larger + half <= 0.1 else surely), defense
            checked.append(facts[1])
    assert {*checked} == {"nothing", "part", "nothing or part"}
    assert len(checked) >= 20
