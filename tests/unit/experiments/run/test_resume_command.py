"""`vflens resume`: which parties it starts, and what it refuses."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import pytest
from commandline import Run
from laboratory import experiment

from vflens.config import load_party
from vflens.errors import ConfigError, VflensError
from vflens.experiments.run import resume as command
from vflens.experiments.run import run as running
from vflens.services.folder import begin, exclusive, write_status
from vflens.wire.sockets import path_of


class Started:
    """In the place of the processes: notes what is started, and lets it end well."""

    def __init__(self) -> None:
        self.files: list[Path] = []

    def __call__(self, configs: dict[str, Path], roles: Any, forks: Any, **_: Any) -> Started:
        self.files += [file for _, file in sorted(configs.items())]
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

    return _interrupted(tmp_path, monkeypatch)


def _interrupted(out: Path, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> Path:
    def interrupted(*_: Any) -> None:
        raise VflensError("interrupted")

    monkeypatch.setattr(running, "_run_one", interrupted)
    monkeypatch.setattr(running, "prepared", nullcontext)
    monkeypatch.setattr(command, "prepared", nullcontext)
    scenarios = [{"name": "first"}, {"name": "the second"}]
    with pytest.raises(VflensError, match=r"^interrupted$"):
        running.run(experiment(out, scenarios=scenarios, **changes))
    for file in (out / "tiny/first").glob("*/config.toml"):
        begin(load_party(file))
        if file.parent.name != "passive":
            write_status(file.parent, "finished")
    return out / "tiny"


@pytest.fixture
def sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The folder of an interrupted run, too deep for sockets, and the folder that they have elsewhere."""
    monkeypatch.setattr(running, "remove_sockets", lambda _: None)  # the run still goes on
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = _interrupted(tmp_path / ("deep" * 25), monkeypatch, network={"transport": "unix"})
    return folder, path_of(load_party(folder / "first/active/config.toml").address).parent


def test_what_had_not_begun_begins(folder: Path, started: Started, vflens: Run) -> None:
    done = vflens("resume", folder)
    assert done.err.splitlines() == [
        "first: all parties started",
        "first: all parties finished",
        "the-second: all parties started",
        "the-second: all parties finished",
    ]
    assert [file.parent.parent.name for file in started.files] == ["first"] * 3 + ["the-second"] * 3


def test_every_party_of_an_unfinished_run_is_started(folder: Path, started: Started) -> None:
    """One that has finished may be needed by another, or ends at once."""
    result = command.resume(folder / "first")
    assert [file.parent.name for file in started.files] == ["active", "coordinator", "passive"]
    assert result.scenarios == (folder / "first",)


@pytest.mark.parametrize("lost", ["first/active/config.toml", "the-second"])
def test_an_experiment_that_was_not_dealt_whole_is_refused(folder: Path, started: Started, lost: str) -> None:
    if (folder / lost).is_file():
        (folder / lost).unlink()
    else:
        shutil.rmtree(folder / lost)
        (folder / lost).mkdir()
    with pytest.raises(ConfigError, match=r"was not dealt whole, .*: begin anew with vflens run$") as refused:
        command.resume(folder)
    assert str(refused.value).startswith(str(folder / Path(lost).parts[0]))
    assert not started.files


def test_a_finished_experiment_is_not_resumed(folder: Path, started: Started) -> None:
    for file in folder.glob("*/*/config.toml"):
        write_status(file.parent, "finished")
    with pytest.raises(ConfigError, match=r"^.* holds no unfinished run: give the folder of a run that was"):
        command.resume(folder)
    assert not started.files


def test_a_run_that_goes_on_is_refused_and_keeps_its_sockets(
    sockets: tuple[Path, Path], started: Started
) -> None:
    folder, listening = sockets
    with exclusive(folder / "first/active"), pytest.raises(ConfigError) as refused:
        command.resume(folder)
    assert str(refused.value) == (
        f"{folder}/first is in use by processes of active: wait for their end, or stop them"
    )
    assert not started.files
    assert listening.is_dir()


def test_who_comes_second_leaves_the_sockets(
    sockets: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another command takes the folders between the check and the start."""
    folder, listening = sockets
    with ExitStack() as other:

        def late(*_: Any, **__: Any) -> None:
            other.enter_context(exclusive(folder / "first/active"))
            raise ConfigError("in use")

        monkeypatch.setattr(command, "Processes", late)
        with pytest.raises(ConfigError, match=r"^in use$"):
            command.resume(folder)
        assert listening.is_dir()


def test_the_end_removes_the_sockets(sockets: tuple[Path, Path], started: Started) -> None:
    folder, listening = sockets
    command.resume(folder)
    assert started.files
    assert not listening.exists()


def test_the_folder_of_sockets_is_made_again(
    sockets: tuple[Path, Path], started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of the interrupted command removed it; parties accept no socket in /tmp itself."""
    folder, listening = sockets
    listening.rmdir()
    found: list[int] = []
    monkeypatch.setattr(started, "wait", lambda _: found.append(listening.stat().st_mode & 0o777))
    command.resume(folder / "first")
    assert found == [0o700]


@pytest.mark.parametrize("at", ["first/passive", "first"])
def test_a_run_that_was_moved_aside_is_not_resumed(folder: Path, started: Started, at: str) -> None:
    for file in (folder / "first").glob("*/config.toml"):
        text: list[str] = []
        begin(load_party(file), text.append)  # the interrupted one moves to earlier-1, with its configuration
        assert (file.parent / "earlier-1/config.toml").exists()
        assert text == [f"the earlier run in {file.parent} moved to earlier-1: nothing of it is lost"]
        write_status(file.parent, "finished")
    with pytest.raises(ConfigError, match=r" holds no unfinished run: "):
        command.resume(folder / at)
    assert not started.files


def test_the_present_folder_is_named(
    folder: Path, started: Started, vflens: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder / "first")
    assert vflens("resume", ".").err.splitlines()[0] == "first: all parties started"
