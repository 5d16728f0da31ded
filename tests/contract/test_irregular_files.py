"""A pipe or a device in place of any file of a run: every reader goes on or says so, and none waits."""

from __future__ import annotations

import gc
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commandline import Run
from nonempty import nonempty

from vflens.experiments.watch.page import RunsPage
from vflens.services.folder import is_held
from vflens.storage.files import load_arrays
from vflens.storage.regular import opened

MOST_SECONDS = 60  # for one reader and one file; a wait has no end
PUT: dict[str, Callable[[Path], None]] = {
    "a pipe": os.mkfifo,
    "a device": lambda file: file.symlink_to("/dev/zero"),
}
COMMANDS = ("report", "ledger", "compare", "verify-log", "score")


@pytest.fixture(autouse=True)
def no_waiting() -> Iterator[None]:
    """Fail what waits: a blocked open ends with the handler's exception."""

    def late(number: int, frame: object) -> None:
        pytest.fail("a reader waits")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(MOST_SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def replaced(finished_run: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy of a run's scenario again and again, each time with a pipe in place of another file.

    A reader that opens by itself waits for the pipe; one by ``opened`` refuses a device too (see below).
    """
    return _replaced(finished_run, tmp_path, _one_of_each_name)


def _one_of_each_name(home: Path) -> list[Path]:
    """One file of each name: who reads one party's reads another's by the same code."""
    parties: dict[tuple[str, ...], list[Path]] = {}
    for file in _files(home):
        parties.setdefault(file.relative_to(home).parts[1:], []).append(file)
    return [alike[number % len(alike)] for number, alike in enumerate(parties.values())]


def _files(home: Path) -> list[Path]:
    return sorted(f for f in home.rglob("*") if f.is_file())


def _replaced(finished: Path, tmp_path: Path, chosen: Callable[[Path], list[Path]]) -> Iterator[Path]:
    home = next(file.parent.parent for file in finished.glob("*/*/config.toml"))
    copy = Path(shutil.copytree(home, tmp_path / "run"))
    for file in chosen(copy):
        whole = file.rename(tmp_path / "whole")
        os.mkfifo(file)
        signal.alarm(MOST_SECONDS)
        yield copy
        whole.rename(file)  # in place of what was put there


def _arguments(command: str, home: Path, tmp_path: Path, whole: Path) -> list[str | Path]:
    if command == "score":
        estimate = next((home / "active" / "estimates").glob("*.npz"))
        return [estimate, "--config", home / "passive" / "config.toml"]
    more: dict[str, list[str | Path]] = {"report": ["--out", tmp_path / "page.html"], "compare": [whole]}
    return [home, *more.get(command, [])]


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # a command's process closes what is open
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_waits(vflens: Run, finished_run: Path, tmp_path: Path, command: str) -> None:
    refusals = 0
    chosen = _files if command == "score" else _one_of_each_name  # it reads one party's
    for home in _replaced(finished_run, tmp_path, chosen):
        ended = vflens(command, *_arguments(command, home, tmp_path, finished_run))
        assert ended.code != 1, ended.err  # an error that nobody expected
        assert "Traceback" not in ended.err
        refusals += ended.code != 0
    assert refusals
    gc.collect()  # what is open warns here, where it may


def test_no_status_waits(vflens: Run, replaced: Iterator[Path]) -> None:
    configs = (config for home in replaced for config in home.glob("*/config.toml"))
    text = nonempty(vflens("status", "--config", config).err for config in configs)
    assert not any("Traceback" in err for err in text)


def test_no_page_waits(finished_run: Path, replaced: Iterator[Path]) -> None:
    whole = RunsPage([finished_run]).panels({})
    shown = nonempty(RunsPage([home.parent / "run"]).panels({}).keys() for home in replaced)
    assert all(keys == whole.keys() for keys in shown)


@pytest.mark.parametrize("kind", PUT)
def test_only_a_regular_file_is_opened(tmp_path: Path, kind: str) -> None:
    PUT[kind](tmp_path / "file")
    with pytest.raises(OSError, match="it is no regular file"):
        opened(tmp_path / "file")
    with pytest.raises(Exception, match=r"it is no regular file\): give the folder"):
        load_arrays(tmp_path / "file")


def test_a_folder_whose_lock_is_a_pipe_is_not_held(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lock")
    assert not is_held(tmp_path)
