"""`vflens resume`: which parties it starts, and what it leaves out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from commandline import Run
from laboratory import experiment

from vflens.config import load_party
from vflens.errors import ConfigError, VflensError
from vflens.experiments.run import resume as command
from vflens.experiments.run import run as running
from vflens.services.folder import begin, write_status


class Started:
    """In the place of the processes: notes what is started, and lets it end well."""

    def __init__(self) -> None:
        self.parties: list[str] = []

    def __call__(self, configs: dict[str, Path], roles: Any, **_: Any) -> Started:
        self.parties = sorted(configs)
        return self

    def __enter__(self) -> Started:
        return self

    def __exit__(self, *_: object) -> None:
        """End."""

    def wait(self, tell: Any) -> None:
        """All have ended."""


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    made = Started()
    monkeypatch.setattr(command, "Processes", made)
    return made


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An experiment of two scenarios that was interrupted in the first, when the passive party alone had not
    ended.
    """

    def interrupted(*_: Any) -> None:
        raise VflensError("interrupted")

    monkeypatch.setattr(running, "_run_one", interrupted)
    scenarios = [{"name": "first"}, {"name": "the second"}]
    with pytest.raises(VflensError, match=r"^interrupted$"):
        running.run(experiment(tmp_path, scenarios=scenarios))
    for file in (tmp_path / "tiny/first").glob("*/config.toml"):
        begin(load_party(file))
        if file.parent.name != "passive":
            write_status(file.parent, "finished")
    return tmp_path / "tiny"


def test_what_had_not_begun_is_named(folder: Path, started: Started, vflens: Run) -> None:
    done = vflens("resume", folder)
    assert done.err.splitlines()[-1] == (
        "the-second: left out, since it had not begun; vflens run begins it in another folder"
    )
    assert sorted(f.name for f in folder.iterdir() if f.is_dir()) == ["first", "the-second"]


def test_every_party_of_an_unfinished_run_is_started(folder: Path, started: Started) -> None:
    """One that has finished may be needed by another, or ends at once."""
    result = command.resume(folder)
    assert started.parties == ["active", "coordinator", "passive"]
    assert (result.scenarios, result.left_out) == ((folder / "first",), (folder / "the-second",))


def test_a_finished_experiment_is_not_resumed(folder: Path, started: Started) -> None:
    write_status(folder / "first/passive", "finished")
    with pytest.raises(ConfigError, match=r"^.* holds no unfinished run: give the folder of a run that was"):
        command.resume(folder)
    assert not started.parties
