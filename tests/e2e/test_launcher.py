"""`vflens run` and its processes: interrupted, killed, twice at a time."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import psutil
import pytest
import terminals
from commandline import STAGE
from processes import SLOW, eventually, experiment_file

from vflens.services.forking.forks import Fork


def descendants(launcher: Fork) -> list[psutil.Process]:
    found: list[psutil.Process] = psutil.Process(launcher.pid).children(recursive=True)
    return found


class TestLauncher:
    def test_nobody_survives_a_killed_launcher(self, tmp_path: Path) -> None:
        file = experiment_file(tmp_path, training=SLOW)
        launcher = terminals.start(["run", str(file)], tmp_path / "said")
        eventually(lambda: len(descendants(launcher)) == 4)  # the parties, and the process that forks them
        children = descendants(launcher)
        eventually(lambda: (tmp_path / "runs/tiny/run/active/transcript/payload.bin").stat().st_size > 0)
        launcher.kill()
        launcher.wait()
        gone, alive = psutil.wait_procs(children, timeout=100)
        for child in alive:
            child.kill()
        assert len(gone) == 4
        status = json.loads((tmp_path / "runs/tiny/run/coordinator/status.json").read_text())
        assert (status["state"], status["reason"]) == ("interrupted", "stopped by a signal")

    @pytest.mark.parametrize("how", [signal.SIGTERM])
    def test_an_interrupted_run_keeps_the_scenarios_before(self, tmp_path: Path, how: signal.Signals) -> None:
        scenarios = [{"name": "first"}, {"name": "second"}]
        file = experiment_file(tmp_path, scenarios=scenarios, training={"epochs": 120, "batch_size": 20})
        home, errors_file = tmp_path / "runs/tiny", tmp_path / "said"
        launcher = terminals.start(["run", str(file)], tmp_path / "told", errors=errors_file)
        eventually(lambda: (home / "second/passive/transcript/payload.bin").stat().st_size > 0)
        assert (
            "first  finished\n" in errors_file.read_text()
        )  # each stage is said when it ends, not with the run
        launcher.send_signal(how)
        assert launcher.wait(100) == 130
        assert STAGE.sub("", errors_file.read_text()) == "interrupted: files written so far are kept\n"
        assert json.loads((home / "first/passive/status.json").read_text())["state"] == "finished"
        assert json.loads((home / "second/passive/status.json").read_text())["state"] != "running"
        assert (home / "report.html").exists()

    @pytest.mark.parametrize("who", ["passive"])
    def test_the_one_that_was_killed_is_named(self, tmp_path: Path, who: str) -> None:
        file = experiment_file(tmp_path, training=SLOW)
        launcher = terminals.start(["run", str(file)], tmp_path / "told", errors=tmp_path / "said")
        home = tmp_path / "runs/tiny/run"
        eventually(lambda: (home / "active/transcript/payload.bin").stat().st_size > 0)
        party = next(c for c in descendants(launcher) if str(home / who / "config.toml") in c.cmdline())
        party.kill()
        assert launcher.wait(100) == 11
        errors_file = (tmp_path / "said").read_text()
        remedy = f"go on with vflens resume {home.parent}"
        assert STAGE.sub("", errors_file) == f"error: party '{who}' was killed by SIGKILL: {remedy}\n"
        assert json.loads((home / who / "status.json").read_text())["state"] == "failed"

    def test_the_process_that_forks_them_was_killed(self, tmp_path: Path) -> None:
        file = experiment_file(tmp_path, training=SLOW)
        launcher = terminals.start(["run", str(file)], tmp_path / "told", errors=tmp_path / "said")
        home = tmp_path / "runs/tiny/run"
        eventually(lambda: (home / "active/transcript/payload.bin").stat().st_size > 0)
        parties = descendants(launcher)
        (forking,) = psutil.Process(launcher.pid).children()
        forking.kill()
        assert launcher.wait(100) == 11
        errors_file = (tmp_path / "said").read_text()
        sentence = "the process that starts the parties was killed by SIGKILL: go on with vflens resume"
        assert STAGE.sub("", errors_file) == f"error: {sentence} {home.parent}\n"
        assert not psutil.wait_procs(parties, timeout=100)[1]
        assert json.loads((home / "passive/status.json").read_text())["state"] != "running"

    def test_two_runs_at_a_time_share_no_folder(self, tmp_path: Path) -> None:
        file = experiment_file(tmp_path)
        outputs = [tmp_path / "one", tmp_path / "two"]
        runs = [
            terminals.start(["run", str(file), "--in-process", "--json"], out, errors=tmp_path / "said")
            for out in outputs
        ]
        assert [run.wait(60) for run in runs] == [0, 0]
        folders = {json.loads(out.read_text())["folder"] for out in outputs}
        assert folders == {str(tmp_path / "runs" / name) for name in ("tiny", "tiny-2")}
