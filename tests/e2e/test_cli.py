"""The command line: help with examples, strict JSON, one sentence for what nobody foresaw."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pytest
import typer
from commandline import Refused, Run, strict
from nonempty import nonempty
from processes import ATTENDED, ENVIRONMENT, VFLENS, eventually, experiment_file
from thinned import first

import vflens.cli.main
from vflens.errors import PluginError, exit_codes
from vflens.experiments.outcome.words import number

ROOT = Path(__file__).parents[2]


def commands() -> list[list[str]]:
    group = typer.main.get_command(vflens.cli.main.app)
    found: list[list[str]] = []
    shown = {name: command for name, command in group.commands.items() if not command.hidden}  # type: ignore[attr-defined]
    for name, command in sorted(shown.items()):
        inner = {n: c for n, c in getattr(command, "commands", {}).items() if not c.hidden}
        found += [[name, n] for n in sorted(inner)] or [[name]]
    return found


class TestHelp:
    def test_all_commands_are_covered(self) -> None:
        assert len(commands()) >= 14

    @pytest.mark.parametrize("command", commands(), ids=" ".join)
    def test_every_command_shows_an_example_of_itself(self, vflens: Run, command: list[str]) -> None:
        ended = vflens(*command, "--help")
        assert ended.code == 0
        assert f"Example: vflens {' '.join(command)}" in " ".join(ended.out.split())

    def test_exit_codes_are_listed(self, vflens: Run) -> None:
        text = " ".join(vflens("--help").out.split())
        for code, word in nonempty(exit_codes().items()):
            assert f" {code} {word}" in text

    @pytest.mark.parametrize(
        "wrong", [["nosuch"], ["run"], ["run", "a", "b"], ["serve", "passive"], ["run", "--zz"]]
    )
    def test_usage_errors(self, refused: Refused, wrong: list[str]) -> None:
        assert refused(2, *wrong).endswith(" --help)")

    @pytest.mark.parametrize(
        "command", first([["attacks", "--json"], ["--help"], ["datasets", "list"], ["version"]])
    )
    def test_light_commands_load_nothing_heavy(self, command: list[str]) -> None:
        code = (
            "import sys, vflens.cli.main\n"
            f"sys.argv = ['vflens', *{command!r}]\n"
            "try: vflens.cli.main.command_line()\n"
            "except SystemExit: pass\n"
            "heavy = {'torch', 'cvxpy', 'sklearn', 'grpc', 'scipy', 'pyarrow', 'plotly'} & set(sys.modules)\n"
            "sys.exit(', '.join(sorted(heavy)) or 0)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


class TestJson:
    @pytest.mark.parametrize(
        "command",
        [
            ["datasets", "list"],
            ["datasets", "show", "wine"],
            ["attacks"],
            ["defenses"],
            ["models"],
            ["version"],
        ],
        ids=" ".join,
    )
    def test_lists(self, vflens: Run, command: list[str]) -> None:
        ended = vflens(*command, "--json")
        assert (ended.code, ended.err) == (0, "")
        assert strict(ended.out)

    def test_results(self, vflens: Run, finished_run: Path, tmp_path: Path) -> None:
        run = finished_run / "run"
        report = strict(vflens("report", run, "--out", tmp_path / "r.html", "--json").out)
        assert report["report"] == str(tmp_path / "r.html")
        attacked = vflens("attack", run / "active", "--attack", "ls", "--out", tmp_path / "e.npz", "--json")
        assert strict(attacked.out)["rows"] == 18
        scored = strict(
            vflens("score", tmp_path / "e.npz", "--config", run / "passive/config.toml", "--json").out
        )
        assert scored["attack"] == "ls"
        assert scored["mse"] >= 0
        facts = vflens("score", tmp_path / "e.npz", "--config", run / "passive/config.toml").out
        assert f"± {number(1.96 * scored['mse_stderr'])}; best blind guess" in facts
        assert scored["half_width"] == 1.96 * scored["mse_stderr"]
        assert strict(vflens("compare", run, run, "--json").out) is not None
        assert strict(vflens("check", run / "active/config.toml", "--json").out)["rows"] == 90
        split = strict(
            vflens(
                "datasets",
                "split",
                finished_run.parents[1] / "experiment.toml",
                "--out",
                tmp_path / "d",
                "--json",
            ).out
        )
        assert set(split) == {"active", "coordinator", "passive"}

    def test_figures_that_are_not_finite_become_null(self, capsys: pytest.CaptureFixture[str]) -> None:
        from vflens.cli.output import emit

        emit(True, {"a": [np.float64("nan"), (float("inf"),)], "b": {"c": -np.inf, "d": 1.5}}, str)
        assert strict(capsys.readouterr().out) == {"a": [None, [None]], "b": {"c": None, "d": 1.5}}


def test_check_prints_lists_as_people_write_them(tmp_path: Path, vflens: Run) -> None:
    (tmp_path / "own.csv").write_text("id,age,bought\na,1,yes\nb,2,no\n")
    (tmp_path / "own.toml").write_text('file = "own.csv"\nid_column = "id"\nlabel_column = "bought"\n')
    shown = vflens("check", tmp_path / "own.toml")
    assert shown.code == 0, shown.err
    assert "  classes: no, yes\n" in shown.out
    assert strict(vflens("check", tmp_path / "own.toml", "--json").out)["classes"] == ["no", "yes"]
    (tmp_path / "own.toml").write_text('file = "own.csv"\nid_column = "id"\ncolumns = ["age"]\n')
    shown = vflens("check", tmp_path / "own.toml")
    assert "  classes: none\n" in shown.out
    assert "[" not in shown.out


def test_check_takes_the_examples(vflens: Run) -> None:
    """Examples that need no file of the machine's."""
    ended = vflens("check", ROOT / "examples/demo.toml")
    assert (ended.code, ended.err) == (0, "")
    assert "fits:" in ended.out


class TestUnforeseen:
    """What nobody thought of is one sentence too, and its traceback can be had."""

    @pytest.mark.parametrize(
        ("error", "code", "words"),
        [
            (
                RuntimeError("two\nlines"),
                1,
                "unexpected RuntimeError: two lines: please report it, with VFLENS_TRACEBACK=1 set",
            ),
            (
                OSError(28, "No space left on device"),
                12,
                "a file: No space left on device: free space, or choose another file or folder",
            ),
            (
                TimeoutError("timed out"),
                11,
                "nobody answered in time: look at the other parties' logs, or raise the limits",
            ),
            (MemoryError("9 PiB"), 1, "out of memory: ask for fewer rows or columns"),
        ],
    )
    def test_one_sentence(
        self,
        refused: Callable[..., str],
        monkeypatch: pytest.MonkeyPatch,
        error: Exception,
        code: int,
        words: str,
    ) -> None:
        def fail(*_: object) -> None:
            raise error

        monkeypatch.setattr("vflens.experiments.run.check.check", fail)
        assert refused(code, "check", "x.toml") == words

    def test_the_traceback_on_request(self, vflens: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("vflens.experiments.run.check.check", lambda *_: 1 / 0)
        monkeypatch.setenv("VFLENS_TRACEBACK", "1")
        ended = vflens("check", "x.toml")
        assert ended.err.startswith("error: unexpected ZeroDivisionError: division by zero")
        assert "Traceback" in ended.err

    def test_a_signal_before_the_command_has_begun(
        self, vflens: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(**_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("vflens.cli.main._COMMANDS", interrupted)
        ended = vflens("version")
        assert (ended.code, ended.err) == (130, "interrupted: files written so far are kept\n")

    def test_a_signal_while_modules_load(self, tmp_path: Path) -> None:
        """Instead of the command line's library one is found that presses Ctrl-C."""
        pressed = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(10)\n"
        (tmp_path / "typer.py").write_text(pressed, encoding="utf-8")
        path = os.pathsep.join([str(tmp_path), str(ROOT)])
        done = subprocess.run(
            [*ATTENDED, *VFLENS, "version"],
            cwd=tmp_path,
            env=ENVIRONMENT | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")

    def test_a_signal_while_a_class_is_made(self, vflens: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        """There Python 3.11 makes a RuntimeError of it; a loader of ours may then make its own of that."""

        class Pressed:
            def __set_name__(self, *_: object) -> None:
                raise KeyboardInterrupt

        def made(*_: object) -> None:
            try:
                type("Plugin", (), {"field": Pressed()})
            except Exception as error:
                raise PluginError("plug-in 'x' does not import") from error

        monkeypatch.setattr("vflens.experiments.run.check.check", made)
        ended = vflens("check", "x.toml")
        assert (ended.code, ended.err) == (130, "interrupted: files written so far are kept\n")

    @pytest.mark.parametrize("seconds", np.linspace(0, 1, 8))
    def test_signals_at_any_moment_of_loading(self, seconds: float) -> None:
        """From the first module that the command line asks for on; before, Python itself is starting."""
        start = f"""
import runpy, sys
class Says:
    def find_spec(self, name, *_):
        if name == "typer":
            sys.meta_path.remove(self)
            print(flush=True)
sys.meta_path.insert(0, Says())
sys.argv = ["vflens", "check", {str(ROOT / "examples/demo.toml")!r}]
runpy.run_module("vflens.cli.main", run_name="__main__", alter_sys=True)
"""
        running = subprocess.Popen(
            [*ATTENDED, sys.executable, "-c", start],
            cwd=ROOT,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert running.stdout is not None
        running.stdout.readline()
        time.sleep(seconds)
        running.send_signal(signal.SIGINT)
        _, sentence = running.communicate(timeout=100)
        if running.returncode == 130:
            assert sentence == "interrupted: files written so far are kept\n"
        else:
            assert (running.returncode, sentence) in ((-signal.SIGINT, ""), (0, ""))

    def test_a_reader_that_left(self) -> None:
        """`vflens datasets list | head -1`."""
        command = f"{' '.join(VFLENS)} datasets list | true"
        done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.stderr == ""

    @pytest.mark.facts
    def test_an_interruption_while_dealing(self, tmp_path: Path) -> None:
        data = {"name": "synthetic", "rows": 600_000, "features": 40, "informative": 20}
        file = experiment_file(tmp_path, data=data)
        running = subprocess.Popen(
            [*ATTENDED, *VFLENS, "run", str(file)],
            env=ENVIRONMENT,
            stderr=subprocess.PIPE,
            text=True,
        )
        eventually(lambda: psutil.Process(running.pid).memory_info().rss > 300e6)
        running.send_signal(signal.SIGINT)
        _, sentence = running.communicate(timeout=100)
        assert running.returncode == 130
        assert sentence == "interrupted: files written so far are kept\n"
        assert not (tmp_path / "runs/tiny/report.html").exists()
