"""``scoring.tolerance`` names columns that are there, at each party its own ones."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from commandline import Refused, Run, refused, vflens
from laboratory import deal, experiment
from processes import experiment_file

_FIXTURES = (refused, vflens)  # used by name
UNKNOWN = {"scoring": {"tolerance": {"x66": 0.2}}}


def _stated(folder: Path, party: str) -> Any:
    text = (folder / party / "config.toml").read_text(encoding="utf-8")
    return tomllib.loads(text).get("scoring")


@pytest.mark.parametrize("command", [("check",), ("run", "--in-process")])
def test_an_unknown_column_is_refused_before_the_run(
    refused: Refused, tmp_path: Path, command: tuple[str, ...]
) -> None:
    name, *options = command
    sentence = refused(2, name, experiment_file(tmp_path, **UNKNOWN), *options)
    assert sentence == "scoring.tolerance.x66: no column of any data party is called 'x66', did you mean x6?"


def test_each_party_is_told_of_its_own_columns(vflens: Run, tmp_path: Path) -> None:
    file = experiment_file(tmp_path, scoring={"tolerance": {"x6": 0.2, "x0": 0.1}})
    assert vflens("run", file, "--in-process").code == 0
    folder = tmp_path / "runs/tiny/run"
    assert _stated(folder, "passive") == {"tolerance": {"x6": 0.2}}
    assert _stated(folder, "active") == {"tolerance": {"x0": 0.1}}


@pytest.mark.parametrize("command", ["check", "serve"])
def test_the_owner_is_refused_a_column_of_others(refused: Refused, tmp_path: Path, command: str) -> None:
    config = deal(experiment(tmp_path), tmp_path / "dealt")["passive"]
    config.write_text(config.read_text(encoding="utf-8") + "\n[scoring.tolerance]\nx0 = 1\nx6 = 1\n")
    asked = ["check", config] if command == "check" else ["serve", "passive", "--config", config, "--quiet"]
    assert refused(2, *asked) == (
        "scoring.tolerance.x0: no column of passive is called 'x0': there are x3, x4, x5, x6"
    )
