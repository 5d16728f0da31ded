"""Writes the scoreboard as Markdown: its rules, its ranks, and published figures beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from scoreboard_parity import parity_tables
from scoreboard_protected import protected_tables
from scoreboard_ranks import rank_tables, tuned_tables

from vflens.experiments.pages.cost import DECIDED, FEWEST
from vflens.experiments.scoreboard.board import Board, boards
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
from vflens.experiments.scoreboard.keys import COST
from vflens.experiments.scoreboard.lines import item
from vflens.experiments.scoreboard.tuned import age, is_apart
from vflens.experiments.scoreboard.verdicts import EXACT, HIDES
from vflens.experiments.sweeps.pool import Rows
from vflens.types import Facts

NOTHING: Mapping[str, Facts] = MappingProxyType({})
_RULE = f"""\
The **relative error** is the error of an attack over that of the best blind guess on the same rows: 0 is
exact, 1 no better than blind. Over seeds both errors are added before they are divided; a seed in which
both are 0 had nothing to find, and one without a finite figure found nothing: both are left out, and counted
as *undefined*. An attack **beats a blind guess** if the 95 % interval of its relative error over seeds
(Student's t) ends below 1. It *finds nearly all* if the interval ends below
{EXACT}, else *part*. The *best attack* is the one of least relative error among those. A defence

- **hides all**: no attack beats a blind guess;
- **hides nothing**: the best attack's relative error is at most {HIDES} larger than without a defence;
- **hides part**: it is larger by more; **nothing or part**: the interval of the difference holds {HIDES};
- is **not decided**: none beats a blind guess, but one that did without it is below {1 - HIDES} on average;
- is **not decided without** an attack that is made for it: one is installed and has no result here; where it
  cannot run, the page says why;
- **acts on what is granted only**: it changes nothing that training or predictions send, so it gets no
  verdict on that; one on what is granted follows where attacks that read it ran.

There is **no verdict** from fewer than {FEWEST} seeds with a finite result.

Its **cost** is in AUC for two classes, in R² for a number, else in accuracy: the mean difference from the
undefended model, seed by seed, on runs without attacks. Beside it stands the **gain**: what the federation
has over the active party alone (over each client alone). The words are

- **no use left**: the interval of the gain contains 0, or lies below it;
- **not decided**: the half width of the interval of the difference is over {DECIDED};
- **at no measured cost**: that interval contains 0; else **at a cost of** the mean;
- **the model is of no use**: the undefended one's gain contains 0, so nothing is said of its defences."""
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
- **Every cell**: `vflens scoreboard --page FILE.html` writes one page with a chart of defences by leak and
  price, these ranks, every result to find, sort and draw, a table of verdicts for each federation, and why
  a result is absent.
- **Again**: all results stand in [scoreboard.parquet](scoreboard.parquet), each under a digest of its
  settings and one of the code that its plug-ins reach, without docstrings and comments, other families of
  models, and protected training where it is clear. So an interrupted call resumes, and a new attack or
  defence costs its own runs only. Where code changed, a call runs the first seed again: if it gives the same
  bits, the results of other seeds stand. A result of earlier code stays here until a call has run it again.
  Remove that file and the folder `.scoreboard` after a change of the protocol that changes results. Bank
  comes from the folder `VFLENS_DATA`.
{age}
- **Read on**: [Submit](submit.md) an attack or a defence. [What changed](scoreboard-changes.md) compares
  two versions of the file.
{missing}

## The rule of the verdicts

{rule}
"""


def page(grid: ScoreboardGrid, rows: Rows, records: Mapping[str, Facts] = NOTHING) -> str:
    """The page of ``rows``; what lacks a seed is left out, and named. ``records``: what ``vflens reproduce``
    recorded, by command, for the figures beside published ones.
    """
    work = ", ".join(f"{most} `{name}`" for name, most in MOST_WORK.items())
    head = {"rows": ROWS, "seeds": grid.seeds, "known": KNOWN_ROWS, "work": work, "rule": _RULE}
    head |= {"cost_rows": COST_ROWS, "cost_seeds": grid.cost_seeds, "attacked": ATTACKED}
    head["age"] = item(f"**Age**: when this page was written, {age(rows)}")
    apart, rows = [r for r in rows if is_apart(r)], [r for r in rows if not is_apart(r)]
    every = boards(rows, grid)
    run = sorted({row["defense"] for row in rows} - {UNDEFENDED})
    left = [unfinished(board, run) for board in every]
    head |= {"data": " and ".join(grid.data), "missing": _missing(every, left)}
    parts = [_HEAD.format(**head), *rank_tables(every), *tuned_tables(every, apart)]
    return "\n".join([*parts, *protected_tables(every), *parity_tables(every, records)])


def _missing(every: Sequence[Board], left: Sequence[str]) -> str:
    lacking = [f"{b.title}: {lacks}" for b, lacks in zip(every, left, strict=True) if lacks]
    return item(f"**Missing**: {'; '.join(lacking)}. `make scoreboard` runs it.") + "\n" if lacking else ""


def unfinished(board: Board, defenses: Sequence[str]) -> str:
    """What of ``defenses``, and of nothing that defends, was not run with all seeds; "" if all was."""
    own = FEDERATIONS[board.federation].defenses
    expected = [UNDEFENDED, *(name for name in defenses if own is None or name in own)]
    ran = {(row["defense"], row["attack"] == COST) for row in board.rows}
    attacks, costs = ([d for d in expected if (d, of_costs) not in ran] for of_costs in (False, True))
    if attacks == expected:
        return "not run yet"
    lacking = {"attacks": attacks, "costs": costs}
    return " and ".join(f"no {what} with {', '.join(names)}" for what, names in lacking.items() if names)
