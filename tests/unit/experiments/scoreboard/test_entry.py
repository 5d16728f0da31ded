"""A new attack on the scoreboard: what is taken, what it is compared with, and the words."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from commandline import Run

from vflens.errors import ConfigError
from vflens.experiments.scoreboard import entry
from vflens.experiments.scoreboard.cells import scored
from vflens.experiments.scoreboard.entry import EntryRank, RivalError, compared, standings
from vflens.experiments.scoreboard.grid import UNDEFENDED, ScoreboardGrid
from vflens.experiments.scoreboard.kinds import PUBLISHED
from vflens.experiments.sweeps.pool import Pool, Rows
from vflens.registry import ATTACKS
from vflens.storage.arrow import parquet_rows

ROOT = Path(__file__).parents[4]
GRID = ScoreboardGrid(("digits",), ("vertical-lr",), [], [], cost_seeds=0)
STRONG, HALF, WIDE = (0.2,) * 5, (0.5,) * 5, (0.3, 0.5, 0.6, 0.4, 0.7)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A copy of an attack that is installed, under a name of its own."""
    file = tmp_path / "mine_of_test.py"
    shutil.copy(ROOT / "attacks" / "half_star.py", file)
    return file


def made(attack: str, figures: Sequence[float], **more: Any) -> Rows:
    shared = {"data": "digits", "federation": "vertical-lr", "defense": UNDEFENDED, "attack": attack}
    shared |= {"measure": "MSE", "rows": "predict"}
    return [
        {**shared, "blind": 1.0, "seed": seed, "figure": figure, **more}
        for seed, figure in enumerate(figures)
    ]


def test_data_that_the_scoreboard_lacks_are_refused(mine: Path) -> None:
    with pytest.raises(ConfigError, match="--data 'iris': the scoreboard has bank, digits or diabetes"):
        compared(mine, "iris", lambda done, total: None)


def test_a_copy_of_a_published_attack_has_its_figure(mine: Path, tmp_path: Path) -> None:
    grid = ScoreboardGrid(("digits",), ("vertical-lr",), ["mine_of_test"], [], seeds=1, cost_seeds=0)
    with ATTACKS.entered_file(mine):
        (own,) = scored(grid, Pool(tmp_path / "kept"))
    place = {
        "data": "digits",
        "federation": "vertical-lr",
        "defense": UNDEFENDED,
        "seed": 1,
        "attack": "half_star",
    }
    (published,) = [r for r in parquet_rows(PUBLISHED) if place.items() <= r.items()]
    assert own["figure"] == pytest.approx(published["figure"], rel=1e-3)
    assert own["blind"] == pytest.approx(published["blind"], rel=1e-3)


def test_the_rank_among_attacks_of_the_same_threat_model_and_its_interval(mine: Path) -> None:
    published = made("ls", STRONG) + made("rcc1", HALF) + made("cls", (0.55,) * 5)
    published += (
        made("clear_features", (0.1,) * 5)
        + made("lmmse", STRONG, defense="fog")
        + made("gia", HALF[1:])
        + made("cls:tuned", STRONG)
    )
    with ATTACKS.entered_file(mine) as name:
        (found,) = standings(name, made(name, WIDE), published, GRID)
    assert [line.attack for line in found.lines] == ["ls", "mine_of_test", "rcc1", "cls"]
    assert str(found) == (  # .50 ± .20: up to .70 all three are before it, from .30 only ls is
        "Vertical, softmax regression, digits: rank 2 of 4 (2 to 4) among attacks on columns (Vertical, with "
        "what is granted); relative error 0.50 ± 0.20"
    )
    record = found.record()
    assert (record["rank"], record["interval"], len(record["lines"])) == (2, [2, 4], 4)


@pytest.mark.parametrize(
    ("own", "text"),
    [
        (made("mine_of_test", WIDE[1:]), "no rank, no verdict: 4 of at least 5 results of mine_of_test"),
        (
            [
                {**row, "blind": None, "figure": None, "reason": "it lacks rows"}
                for row in made("mine_of_test", WIDE)
            ],
            "no rank, it lacks rows",
        ),
    ],
)
def test_what_has_no_rank_says_why(mine: Path, own: Rows, text: str) -> None:
    grid = ScoreboardGrid(("digits",), ("vertical-lr",), [], [], seeds=len(own), cost_seeds=0)
    with ATTACKS.entered_file(mine) as name:
        (found,) = standings(name, own, made("ls", STRONG), grid)
    assert str(found) == f"Vertical, softmax regression, digits: {text}"
    assert found.record() == {"section": "Vertical, softmax regression, digits", "reason": text[9:]}


def test_a_wheel_has_the_rows_of_the_page() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert settings["package-data"]["vflens.experiments.scoreboard"] == [PUBLISHED.name]
    assert PUBLISHED.read_bytes() == (ROOT / "docs/scoreboard.parquet").read_bytes()


def test_the_command_prints_each_section_the_rows_and_the_time(
    vflens: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (RivalError("ls", 0.2, 0.0), RivalError("mine", 0.5, 0.2))
    found = [
        EntryRank("mine", "Vertical", "columns", lines),
        EntryRank("mine", "Split", reason="it lacks rows"),
    ]
    monkeypatch.setattr(entry, "compared", lambda *given: (found, 12.4))
    text = vflens("scoreboard", "--attack", "mine.py").out
    assert "Vertical: rank 2 of 2 (2 to 2) among attacks on columns; relative error 0.50 ± 0.20" in text
    assert "→ mine" in text
    assert "Split: no rank, it lacks rows" in text
    assert text.endswith("Its runs took 12 s.\n")
