"""Where there is no terminal, a stage leaves lines with their times."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import horizontal
import pytest
from commandline import STAGE, strict
from processes import ENVIRONMENT, VFLENS, experiment_file

from vflens.cli.screen import progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Seconds that a test sets: ``clock.now``."""
    facts = SimpleNamespace(now=100.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: facts.now))
    return facts


def test_a_stage_has_a_line_at_its_end_and_every_five_seconds(
    clock: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress.StageBar() as bar:
        for now, done in [(101, 1), (104.9, 2), (105, 3), (109, 4), (110.5, 5), (111, 6), (112, 6)]:
            clock.now = now
            bar("training", done, 6)
        clock.now = 125
        bar("predicting", 10, 10)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "    5.0 s  training 3/6",
        "   10.5 s  training 5/6",
        "   11.0 s  training 6/6",
        "   25.0 s  predicting 10/10",
    ]
    assert STAGE.sub("", err) == ""


def test_a_line_says_what_of_its_stage_runs(
    clock: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    """The stage is one, whatever of it runs: it ends once."""
    with progress.StageBar() as bar:
        for now, what, done in [
            (106, ": lmmse", 0),
            (112, ": ls, sweeps 3/30", 1),
            (113, "", 2),
            (119, ": ls", 1),
        ]:
            clock.now = now
            bar(f"models attacked{what}", done, 2)
    assert capsys.readouterr().err.splitlines() == [
        "    6.0 s  models attacked 0/2: lmmse",
        "   12.0 s  models attacked 1/2: ls, sweeps 3/30",
        "   13.0 s  models attacked 2/2",
    ]


def test_a_quiet_party_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.StageBar(quiet=True) as bar:
        bar("training", 6, 6)
    assert capsys.readouterr() == ("", "")


def test_files_are_read_in_per_cent(clock: SimpleNamespace, capsys: pytest.CaptureFixture[str]) -> None:
    with progress.FileBar() as bar:
        bar.update("reading", 1_000_000, 3_000_000)
        clock.now += 10
        bar.update("reading", 2_000_000, 3_000_000)
        bar.update("reading", 3_000_000, 3_000_000)
    assert capsys.readouterr().err == "   10.0 s  reading 66 %\n   10.0 s  reading 100 %\n"


def _lines(err: str) -> Iterator[str]:
    for line in err.splitlines(keepends=True):
        assert STAGE.fullmatch(line), line
        yield line.split(" s  ")[1].rstrip("\n")


def test_a_run_whose_output_goes_to_a_file_says_each_stage(tmp_path: Path) -> None:
    """With --json too: standard output holds the one document. Packages in the current folder that have names
    like VFLens's own do no harm.
    """
    for name in ("attacks", "cli", "clients", "services"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit(99)")
    file = experiment_file(tmp_path, scenarios=[{"name": "one"}, {"name": "other one"}])
    command = [str(Path(VFLENS[0]).parent / "vflens"), "run", str(file), "--json"]
    done = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert strict(done.stdout)["folder"] == str(tmp_path / "runs/tiny")
    epochs = json.loads((tmp_path / "runs/tiny/one/active/federation.json").read_text())["training"]["epochs"]
    stages = ["started", "aligned: 72 rows to train, 18 to predict", f"training {epochs}/{epochs}"]
    stages += ["predicting 18/18", "finished"]
    text = [line for line in _lines(done.stderr) if f"{epochs}/" in line or "training" not in line]
    due = [f"{name:<9} {stage}" for name in ("one", "other one") for stage in stages]
    assert sorted(text) == sorted(due)  # parties log side by side, into files of their own
    assert [line for line in text if line.endswith("ed")] == [line for line in due if line.endswith("ed")]


def test_the_rows_and_rounds_of_a_horizontal_run_are_shown(
    clock: SimpleNamespace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = {"a": horizontal.table(30, 1), "b": horizontal.table(17, 2)}
    horizontal.federation(horizontal.deal(tmp_path, tables, horizontal={"rounds": 3})).run()
    logged = [
        json.loads(line)
        for party in ("a", "server")
        for line in (tmp_path / party / "events.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    data = {"name": "synthetic"}
    with progress.ScenarioBars(horizontal.experiment(tmp_path, data=data, horizontal={})) as bars:
        for event in logged:
            bars("run", event)
    text = [line.partition("s  run ")[2] for line in capsys.readouterr().err.splitlines() if "  run " in line]
    assert text == ["prepared: 35 rows to train at 2 clients", "training 3/3"]
