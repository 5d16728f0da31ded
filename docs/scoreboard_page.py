"""Writes the scoreboard as Markdown: for each data set and federation the verdicts, then all figures."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from scoreboard_parity import parity_tables
from scoreboard_protected import protected_tables

from vflens.experiments.scoreboard.board import FAMILIES, Board, boards, unfinished
from vflens.experiments.scoreboard.grid import (
    ATTACKED,
    COST_ROWS,
    FEDERATIONS,
    KNOWN_ROWS,
    MOST_WORK,
    ROWS,
    UNDEFENDED,
    ScoreboardGrid,
)
from vflens.experiments.scoreboard.lines import item, listed, paragraph, table
from vflens.experiments.scoreboard.ranks import rank_tables
from vflens.experiments.scoreboard.tuned import age, is_apart, tuned_tables
from vflens.experiments.scoreboard.verdicts import RULE, CellResult
from vflens.experiments.sweeps.pool import Rows
from vflens.numerics.measures.intervals import spread
from vflens.types import Facts

NOTHING: Mapping[str, Facts] = MappingProxyType({})
_HEAD = """\
# Scoreboard

Every installed attack against every installed defence. `make scoreboard` writes this page.

- **What runs**: {rows} rows of {data}, {seeds} seeds; without attacks, for accuracy, gain and cost,
  {cost_rows} rows and {cost_seeds} seeds; all parties in one process. Attacks of vertical
  federations estimate {attacked} of them. The settings are small: the figures compare attacks and
  defences with each other. They bound nothing, and are not those of a tuned attack, but for
  [a few](#tuned-and-default-settings).
- **Training in the clear**: attacks may read what training sends, except in the tables on protected training
  and, of single clients, on masked sums. The adversary was granted much: parameters, mean and covariance,
  {known} rows and {known} labels; it has {known} rows of other people. The server of clients also gets single
  embeddings, gradients and candidates, under masks nothing.
- **Defences** act at every party that holds rows where they can act, with the middle of the strengths
  that `vflens audit` tries: by default their default settings.
- **Attacks** have their defaults, with at most
  {work}.
  One that believes something of a row's mean takes it from {known} rows of another draw.
- **Figures**: mean ± 95 % half width over seeds (Student's t). *MSE* is per column scaled to [0, 1];
  smaller is better for the attack. *R²* is after the best affine map; *accuracy* is the share of right
  labels, beside the most frequent class; *AUC* stands for two classes and for membership. Larger is
  better there. *Distance* is that of the mean of a column in [0, 1] from the truth, on average over columns,
  beside the best guess from what was granted: attacks on properties of a population tell that alone. Here
  means were granted and nothing shifts, so that guess is near already: the ranks tell who errs less.
- "–": no result; the reasons stand below each table.
- **Again**: all results stand in [scoreboard.parquet](scoreboard.parquet), each under a digest of its
  settings and one of the code that its plug-ins reach, without docstrings and comments, other families of
  models, and protected training where it is clear. So an interrupted call resumes, and a new attack or
  defence costs its own runs only. Where code changed, a call runs the first seed again: if it gives the same
  bits, the results of other seeds stand. A result of earlier code stays here until a call has run it again.
  Remove that file and the folder `.scoreboard` after a change of the protocol that changes results. Bank
  comes from the folder `VFLENS_DATA`.
{age}
- **Read on**: `vflens scoreboard --page FILE.html` writes all results as one page to find, sort and draw.
  [What changed](scoreboard-changes.md) compares two versions of the file.
{missing}

## The rule of the verdicts

{rule}
"""


def page(grid: ScoreboardGrid, rows: Rows, records: Mapping[str, Facts] = NOTHING) -> str:
    """The page of ``rows``; what lacks a seed is left out, and named. ``records``: what ``vflens reproduce``
    recorded, by command, for the figures beside published ones.
    """
    work = ", ".join(f"{most} `{name}`" for name, most in MOST_WORK.items())
    head = {"rows": ROWS, "seeds": grid.seeds, "known": KNOWN_ROWS, "work": work, "rule": RULE}
    head |= {"cost_rows": COST_ROWS, "cost_seeds": grid.cost_seeds, "attacked": ATTACKED}
    head["age"] = item(f"**Age**: when this page was written, {age(rows)}")
    apart, rows = [r for r in rows if is_apart(r)], [r for r in rows if not is_apart(r)]
    every = boards(rows, grid)
    run = sorted({row["defense"] for row in rows} - {UNDEFENDED})
    left = [unfinished(board, run) for board in every]
    head |= {"data": " and ".join(grid.data), "missing": _missing(every, left)}
    parts = [_HEAD.format(**head), *rank_tables(every), *tuned_tables(every, apart)]
    parts += protected_tables(every)
    parts += parity_tables(every, records)
    for data in grid.data:
        parts.append(f"## {data}\n")
        for board, lacks in (both for both in zip(every, left, strict=True) if both[0].data == data):
            parts.append(f"### {FEDERATIONS[board.federation].title}, {data}\n")
            parts += [paragraph(lacks)] if lacks else []
            parts += _sections(board)
    return "\n".join(parts)


def _missing(every: Sequence[Board], left: Sequence[str]) -> str:
    lacking = [board for board, lacks in zip(every, left, strict=True) if lacks]
    if not lacking:
        return ""
    named = "; ".join(f"{FEDERATIONS[b.federation].title}, {b.data}" for b in lacking)
    return item(f"**Missing**: not all was run of {named}. Each says below what it lacks.") + "\n"


def _sections(board: Board) -> Iterator[str]:
    if not board.found[UNDEFENDED]:
        return
    families = [f for f in FAMILIES if board.of_family(UNDEFENDED, f)]
    for family in families:
        yield _worst(board, family)
    heads = ["defence", "accuracy", "gain", "cost", *(FAMILIES[f] for f in families)]
    yield table(heads, [_verdict(board, d, families) for d in board.found])
    yield "<details markdown><summary>All figures</summary>\n"
    defenses = list(board.found)
    heads = ["attack", "measure", "blind", *defenses]
    yield table(heads, [_figures(board, attack, defenses) for attack in board.attacks])
    yield "</details>\n"
    yield from _reasons(board)


def _worst(board: Board, family: str) -> str:
    return item(f"**{FAMILIES[family]}**: {board.summary(family)}.")


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
    """Why combinations have no result: a line per reason, with the attacks and defences it is true of. What
    is true of a defence is not said again of attacks that had a run to themselves.
    """
    without = [(_plain(row["reason"]), row) for row in board.rows if row.get("reason")]
    refused: dict[str, dict[str, None]] = {}
    for reason, row in without:
        if row["refused"]:
            refused.setdefault(reason, {})[row["defense"]] = None
    lacking: dict[str, dict[str, set[str]]] = {}
    for reason, row in without:
        if row["defense"] not in refused.get(reason, ()):
            by_attack = lacking.setdefault(reason, {})
            by_attack.setdefault(row["attack"], set()).add(row["defense"])
    if not refused and not lacking:
        return
    yield "<details markdown><summary>Why there is no result</summary>\n"
    for reason, defenses in refused.items():
        yield item(f"{listed(defenses)}: {reason}")
    for reason, by_attack in lacking.items():
        met = set.union(*by_attack.values())
        where = "" if UNDEFENDED in met else f" with {listed(sorted(met))}"
        yield item(f"{listed(by_attack)}{where}: {reason}")
    yield "\n</details>\n"


def _plain(reason: str) -> str:
    """``reason`` in one line of Markdown, without the row that it names: each seed has another one."""
    reason = re.sub(r" \(first: \d+\)", "", reason)
    return " ".join(reason.replace("<", "&lt;").replace("|", "\\|").split())
