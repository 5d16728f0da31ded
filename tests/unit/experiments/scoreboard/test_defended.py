"""A new defence on the scoreboard: it runs in a folder that a later call reads, and gets a rank."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commandline import Refused, Run
from thinned import first

from vflens.errors import ConfigError, PluginError
from vflens.experiments.scoreboard import cells, defended
from vflens.experiments.scoreboard import grid as grids
from vflens.experiments.scoreboard.board import Board
from vflens.experiments.scoreboard.defended import hidden_by, rank
from vflens.experiments.scoreboard.grid import UNDEFENDED, ScoreboardGrid
from vflens.experiments.sweeps.pool import Rows

SILENT = """
import numpy as np

from vflens.plugins.defense import Defense


class Silent(Defense):
    \"\"\"Every class is released as equally likely.\"\"\"

    def on_scores(self, log_c, ctx):
        \"\"\"One number everywhere.\"\"\"
        return {returned}
"""


def nothing(done: int, total: int) -> None:
    """No bar."""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tiny defence of a stranger, and a scoreboard of one federation and two attacks."""
    tiny = ScoreboardGrid(("digits",), ("vertical-lr",), ("lmmse", "gradient_sign"))
    monkeypatch.setattr(defended, "grid_of", lambda *given: tiny)
    monkeypatch.setattr(grids, "ROWS", 150)
    monkeypatch.setattr(grids, "COST_ROWS", 100)
    file = tmp_path / "silent_of_test.py"
    file.write_text(SILENT.format(returned="np.full_like(log_c, -np.log(log_c.shape[1]))"))
    return file


def made(attack: str, figures: Sequence[float], defense: str = UNDEFENDED, **more: Any) -> Rows:
    shared = {"attack": attack, "defense": defense, "measure": "MSE", "rows": "predict", "blind": 1.0}
    return [{**shared, "seed": seed, "figure": figure, **more} for seed, figure in enumerate(figures)]


@pytest.mark.facts
def test_a_defence_of_a_stranger_gets_a_rank_among_published_ones_and_is_not_run_again(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal scores say nothing of columns, and gradients show every label as before."""
    ran: list[int] = []
    whole = cells.measured

    def counted(place: grids.Place, attacks: Any, *, scratch: str) -> Rows:
        ran.append(place.seed)
        if len(ran) == 3:
            raise KeyboardInterrupt
        return whole(place, attacks, scratch=scratch)

    monkeypatch.setattr(cells, "measured", counted)
    with pytest.raises(KeyboardInterrupt):
        hidden_by(mine, "digits", tmp_path / "kept", nothing)
    (found,) = hidden_by(mine, "digits", tmp_path / "kept", nothing)
    assert len(ran) == 16  # five seeds with attacks, ten for the cost, and the one that was interrupted
    assert found.hidden is not None
    columns, labels = found.hidden["features"], found.hidden["labels"]
    assert 1 <= columns.rank < labels.rank <= labels.of
    assert columns.of > 20
    assert labels.error == 0
    assert labels.verdict == "hides nothing (gradient_sign, 0.00 ± 0.00)"
    assert "Vertical, softmax regression, digits: columns: rank " in str(found)
    assert hidden_by(mine, "digits", tmp_path / "kept", nothing) == [found]
    assert len(ran) == 16


FOREIGN: dict[str, Any] = {
    "another table": {"age": [31, 40]},
    "a key of its own": {"key": [1, 2], "seed": [1, 2]},
    "a key alone": {"key": ["a", "b"]},
    "days that nobody counts": {"key": pa.array([2**40], pa.timestamp("s"))},
    "no table": None,
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_folder_of_other_tables_is_refused_in_a_sentence(
    mine: Path, tmp_path: Path, kind: str, refused: Refused
) -> None:
    file = tmp_path / "kept" / "own.parquet"
    file.parent.mkdir()
    file.write_bytes(b"PAR1") if FOREIGN[kind] is None else pq.write_table(pa.table(FOREIGN[kind]), file)
    words = refused(2, "scoreboard", "--defense", mine, "--folder", file.parent)
    assert words == f"{file} holds no results of a scoreboard: choose another folder, or remove it"
    assert [f.name for f in file.parent.iterdir()] == ["own.parquet"]


def test_data_on_which_no_defence_runs_are_refused(tmp_path: Path, refused: Refused) -> None:
    file = tmp_path / "silent_of_test.py"
    file.write_text(SILENT.format(returned="log_c"))
    words = refused(2, "scoreboard", "--defense", file, "--data", "diabetes")
    assert words == "--data diabetes: the scoreboard runs no defence there, give bank or digits"
    assert [*tmp_path.iterdir()] == [file]


def test_the_rank_counts_published_defences_that_leave_a_larger_error() -> None:
    rows = made("ls", (0.1,) * 5) + made("ls", (0.3,) * 5, "mine") + made("ls", (0.9,) * 5, "fog")
    rows += made("gia", (0.2,) * 5, "fog") + made("ls", (0.3,) * 5, "mist") + made("ls", (0.5,) * 5, "haze")
    rows += made("ls", (2.0,) * 5, "grants", on_grants_only=True) + made("ls", (0.8,) * 4, "few")
    found = rank("mine", Board("digits", "vertical-lr", rows))
    assert found.hidden is not None
    assert found.hidden["features"].error == pytest.approx(0.3)
    assert str(found) == (
        "Vertical, softmax regression, digits: columns: rank 2 of 4, hides part (ls, 0.30 ± 0.00); "
        "not measured (0 of at least 5 results)"
    )
    grants = rank("grants", Board("digits", "vertical-lr", rows))
    assert str(grants).endswith("no rank, it acts on what is granted only")
    assert rank("gone", Board("digits", "vertical-lr", rows)).reason == "nothing ran"
    assert found.record()["hidden"]["features"]["rank"] == 2


@pytest.mark.parametrize("returned", first(["log_c[:, :1]", "None"]))
def test_a_defence_that_fails_has_no_rank_for_a_reason(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, returned: str
) -> None:
    one = ScoreboardGrid(("digits",), ("vertical-lr",), ("lmmse", "half_star"), seeds=1, cost_seeds=1)
    monkeypatch.setattr(defended, "grid_of", lambda *given: one)
    mine.write_text(SILENT.format(returned=returned))
    (found,) = hidden_by(mine, "digits", tmp_path / "kept", nothing)
    assert found.hidden is None
    assert "on_scores" in found.reason
    assert "\n" not in found.reason


def test_a_defence_without_hooks_is_asked_for_one(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = ScoreboardGrid(("digits",), ("vertical-lr",), ("lmmse",), seeds=1, cost_seeds=1)
    monkeypatch.setattr(defended, "grid_of", lambda *given: one)
    mine.write_text(mine.read_text().replace("def on_", "def never_on_"))
    (found,) = hidden_by(mine, "digits", tmp_path / "kept", nothing)
    acts = "would never act: it changes nothing, this party handles "
    assert found.reason.startswith(f"defence {mine.stem!r} at coordinator 'coordinator' {acts}")
    monkeypatch.setattr(defended, "_UNABLE", re.compile("(no remedy of a run)"))
    (found,) = hidden_by(mine, "digits", tmp_path / "kept", nothing)
    assert found.reason.endswith(": give it a hook")


@pytest.mark.parametrize(
    "why",
    [
        "'mine' at client 'a' would never act: it changes scores, this party handles update: move it away",
        "'mine' of 'active' never acted in this run: remove it, or configure what it acts on",
        "'mine' at 'active' has nothing to act on, softmax regression has no layers: leave it out",
        "'mine' at 'a' watches gradients that arrive, method = 'fedavg' sends none: choose 'splitfed'",
        "'mine' at 'passive' reads labels of its owner: name its own data.label_column, or choose another",
    ],
)
def test_what_cannot_act_gets_the_remedy_of_a_scoreboard_not_of_a_run(why: str) -> None:
    shared = {"defense": "mine", "attack": "lmmse", "seed": 1, "figure": None, "blind": None, "refused": True}
    row = {**shared, "reason": f"defence {why}"}
    cause = f"defence {why.rpartition(': ')[0]}"
    found = rank("mine", Board("digits", "vertical-lr", [row])).reason
    assert found == f"{cause}: give it a hook that acts here for a rank here"
    row["reason"] = "defence 'mine' broke: on_scores returned float32: return float64"
    assert rank("mine", Board("digits", "vertical-lr", [row])).reason == row["reason"]


def test_the_reason_of_the_defence_comes_before_that_of_an_attack() -> None:
    shared = {"defense": "mine", "seed": 1, "figure": None, "blind": None}
    rows = [{**shared, "attack": "confidence", "reason": "it has no seat", "refused": False}]
    rows += [{**shared, "attack": "lmmse", "reason": "size is missing", "refused": True}]
    found = rank("mine", Board("digits", "vertical-lr", [*made("ls", (0.1,) * 5), *rows]))
    assert str(found) == "Vertical, softmax regression, digits: no rank, size is missing"


def test_code_that_raises_is_blamed_in_a_sentence(mine: Path, tmp_path: Path) -> None:
    mine.write_text(SILENT.format(returned="1 / 0"))
    with pytest.raises(PluginError, match=r"silent_of_test.py, line 12: mend it, ZeroDivisionError: div"):
        hidden_by(mine, "digits", tmp_path / "kept", nothing)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("def x(:", "'vflens.defenses.bad_of_test' does not import: SyntaxError"),
        ("import vflens", "'bad_of_test' must define exactly one public subclass"),
        (
            SILENT.replace("def ", "strengths = 3\n\n    def ", 1),
            "'bad_of_test' has strengths = 3: give a tuple",
        ),
        (None, "bad_of_test.py is no Python file: give one plug-in as `vflens new` makes it"),
    ],
)
def test_a_bad_file_is_refused_in_a_sentence(
    vflens: Run, tmp_path: Path, text: str | None, sentence: str
) -> None:
    file = tmp_path / "bad_of_test.py"
    if text is not None:
        file.write_text(text)
    error = vflens("scoreboard", "--defense", str(file)).err
    assert error.startswith("error: ")
    assert sentence in error
    assert "Traceback" not in error
    assert not (tmp_path / "bad_of_test.runs").exists()


def test_a_folder_is_for_a_defence_and_no_file(vflens: Run, mine: Path) -> None:
    words = "--folder keeps the runs of a defence: give --defense FILE too, or leave it out"
    assert words in vflens("scoreboard", "--attack", str(mine), "--folder", "kept").err
    with pytest.raises(ConfigError, match="is a file: give a folder, new or of an earlier call"):
        hidden_by(mine, "digits", mine, nothing)


def test_the_command_prints_each_section(vflens: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path] = []

    def found(file: Path, data: str, folder: Path, progress: object) -> list[defended.DefenseRank]:
        asked.append(folder)
        return [defended.DefenseRank("mine", "Split, digits", reason="it lacks rows")]

    monkeypatch.setattr(defended, "hidden_by", found)
    assert vflens("scoreboard", "--defense", "a/mine.py").out == "Split, digits: no rank, it lacks rows\n"
    assert asked == [Path("a/mine.runs")]
