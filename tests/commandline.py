"""The command line in this process: what it prints, what it returns, and how it refuses."""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from processes import experiment_file
from terminals import VFLENS, forks
from typer.main import get_command

from vflens.cli import main
from vflens.experiments.run.loading import load_experiment
from vflens.experiments.run.run import run

STAGE = re.compile(r"^ *\d+\.\d s  .*\n", re.MULTILINE)  # the line of a stage


class Ended(NamedTuple):
    """What a command returned and printed, without the lines of its stages."""

    code: int
    out: str
    err: str


_COMMANDS = cache(get_command)
Run = Callable[..., Ended]
Refused = Callable[..., str]


@pytest.fixture
def vflens(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """The command line, called in this process; Typer reads the signatures of all commands once."""
    monkeypatch.setattr("typer.main.get_command", _COMMANDS)
    before = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}

    def run(*arguments: str | Path) -> Ended:
        monkeypatch.setattr(sys, "argv", ["vflens", *map(str, arguments)])
        capsys.readouterr()
        try:
            main.command_line()
            code: Any = 0
        except SystemExit as end:
            code = end.code or 0
        out, err = capsys.readouterr()
        return Ended(code, out, STAGE.sub("", err))

    yield run
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def refused(vflens: Run) -> Refused:
    """The one sentence of a command that ends with this exit code, behind its notes."""

    def run(code: int, *arguments: str | Path) -> str:
        ended = vflens(*arguments)
        assert ended.code == code, ended.err
        assert ended.out == ""
        notes, begin, sentence = ended.err.partition("error: ")
        assert begin
        assert all(line.startswith(("note: ", "this audit: ")) for line in notes.splitlines())
        assert ended.err[-1:] == "\n"
        assert sentence.count("\n") == 1
        return sentence.rstrip("\n")

    return run


@pytest.fixture
def one_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs in processes fork them from the tests' own, which has loaded everything once."""
    for room in ("run", "resume"):
        place = f"vflens.experiments.run.{room}.prepared"
        monkeypatch.setattr(place, lambda models: nullcontext(forks(VFLENS)))


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run, in one process."""
    folder = tmp_path_factory.mktemp("finished_run")
    file = experiment_file(folder, disclose=[{"what": "parameters", "to": "active"}])
    return run(load_experiment(file), in_process=True).folder


def strict(text: str) -> Any:
    """JSON as its standard has it: no NaN, no Infinity."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)
