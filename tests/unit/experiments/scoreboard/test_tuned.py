"""Tuned rows of the scoreboard: settings are chosen without a scored run, and stand beside the defaults."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import scoreboard_tuned as module
from scoreboard_ranks import tuned_tables
from scoreboard_tuned import TUNING_SEEDS, tuned

from vflens.experiments.scoreboard.board import Board
from vflens.experiments.scoreboard.grid import FEDERATIONS, NUMBER, UNDEFENDED, ScoreboardGrid
from vflens.experiments.scoreboard.tuned import is_apart
from vflens.experiments.sweeps.pool import Pool, Rows

PLACE = {"data": "bank", "federation": "vertical-lr", "defense": UNDEFENDED}
SCORED = range(1, 6)


def made(attack: str, figures: Sequence[float], seeds: Sequence[int] = SCORED, **more: Any) -> Rows:
    shared = {**PLACE, "attack": attack, "measure": "MSE", "rows": "predict", "blind": 1.0, **more}
    return [{**shared, "seed": seed, "figure": figure} for seed, figure in zip(seeds, figures, strict=True)]


def trials(**errors: float) -> Rows:
    """Results of ``clear_columns``, by the number of its settings; each seed took 2 seconds."""
    each = [made(f"clear_columns:{n[1:]}", [e] * 3, TUNING_SEEDS, seconds=2.0) for n, e in errors.items()]
    return [row for rows in each for row in rows]


def lines(rows: Rows) -> list[str]:
    defaults = made("clear_columns", [0.6] * 5) + made("half_star", [0.4] * 5) + made("half", [0.1] * 5)
    text = "\n".join(tuned_tables([Board("bank", "vertical-lr", defaults)], rows))
    return [line for line in text.splitlines() if line.startswith("| clear_columns")]


def test_both_stand_in_one_line_with_rank_and_budget() -> None:
    """Ranks are among those of one threat model: `half` needs nothing granted."""
    rows = trials(_0=0.5, _1=0.3, _2=0.4) + made("clear_columns:tuned", [0.2] * 5)
    place = "| clear_columns | Vertical, softmax regression, bank |"
    assert lines(rows) == [
        f"{place} 2 of 2 on columns | 0.60 ± 0.00 | `sweeps = 30` | 1 of 2 on columns | 0.20 ± 0.00 | 3 | 6 |"
    ]


def test_no_scored_run_has_a_part_in_the_choice() -> None:
    """The last settings were exact on scored seeds, and are not chosen: elsewhere they were the worst."""
    rows = trials(_0=0.5, _1=0.3, _2=0.9) + made("clear_columns:2", [0.0] * 5)
    for scored in (0.2, 5.0):
        (found,) = lines(rows + made("clear_columns:tuned", [scored] * 5))
        assert "`sweeps = 30`" in found
    assert not {*TUNING_SEEDS} & {*SCORED}


def test_nothing_stands_there_without_trials_or_chosen_settings() -> None:
    assert lines([]) == lines(trials(_0=0.5)) == []
    assert [is_apart({"attack": name}) for name in ("cls", "cls:1", "cls:tuned", "half:mine")] == [
        False,
        True,
        True,
        False,
    ]


def test_trials_and_chosen_settings_run_and_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GRIDS", {"cls": ({"start": "clamped_ls"}, {"start": "half"})})
    monkeypatch.setattr(module, "TUNING_SEEDS", (101,))
    grid, pool = ScoreboardGrid(("digits",), ("vertical-lr",), seeds=1), Pool(tmp_path)
    rows = tuned(grid, pool)
    errors = {(row["attack"], row["seed"]): row["figure"] for row in rows}
    assert errors.keys() == {("cls:0", 101), ("cls:1", 101), ("cls:tuned", 1)}
    assert min(row["seconds"] for row in rows) > 0
    assert len({row["key"] for row in rows}) == 3
    monkeypatch.setattr(module, "_timed", pytest.fail)
    assert tuned(grid, pool) == rows


def test_a_number_has_attacks_and_a_data_set_of_its_own() -> None:
    number, classes = FEDERATIONS[NUMBER], FEDERATIONS["vertical-lr"]
    apart = [s for s in ScoreboardGrid().sections() if NUMBER in s or "diabetes" in s]
    assert apart == [(NUMBER, "diabetes")]
    assert number.attack("first_residuals", "diabetes") == {"name": "first_residuals", "at": "passive"}
    assert number.attack("gradient_sign", "diabetes") is None
    assert classes.attack("first_residuals", "bank") is None
    both = number.attack("half_star", "diabetes"), classes.attack("half_star", "bank")
    assert both == ({"name": "half_star"}, {"name": "half_star"})
