"""How the launcher ends its processes."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from vflens.errors import StorageError, UnavailableError
from vflens.experiments.run import processes as launch
from vflens.services.folder import write_status


def test_who_is_slow_to_stop_is_named_before_it_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started: dict[str, subprocess.Popen[bytes]] = {}

    def start(role: str, file: Path, *, resume: bool) -> subprocess.Popen[bytes]:
        before = signal.signal(signal.SIGTERM, signal.SIG_IGN if role == "passive" else signal.SIG_DFL)
        started[role] = subprocess.Popen(["sleep", "600"], stdin=subprocess.PIPE)  # inherits what is ignored
        signal.signal(signal.SIGTERM, before)
        return started[role]

    monkeypatch.setattr(launch, "_start", start)
    monkeypatch.setattr(launch, "_SILENT_SECONDS", 1.0)
    monkeypatch.setattr(launch, "_PATIENCE_SECONDS", 1.5)
    roles = {"a": "passive", "b": "active"}
    launch.Processes({party: tmp_path / party / "config.toml" for party in roles}, roles).stop()
    assert capsys.readouterr().err == "waiting up to 0.5 s for a to stop, then killing\n"
    assert [started[role].returncode for role in roles.values()] == [-signal.SIGKILL, -signal.SIGTERM]


def test_a_crash_loop_ends_with_its_first_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[bool] = []

    def start(role: str, file: Path, *, resume: bool) -> subprocess.Popen[bytes]:
        begun.append(resume)
        ends = "kill -9 $$" if not resume else "kill -6 $$"
        return subprocess.Popen(["sh", "-c", ends], stdin=subprocess.PIPE)

    monkeypatch.setattr(launch, "_start", start)
    (tmp_path / "a").mkdir()
    told: list[object] = []
    processes = launch.Processes({"a": tmp_path / "a" / "config.toml"}, {"a": "passive"}, restart=2)
    with pytest.raises(
        UnavailableError,
        match=r"^party 'a' failed again after every restart; the first time: party 'a' was killed by SIGKILL",
    ):
        processes.wait(told.append)
    assert begun == [False, True, True]
    assert len(told) == 2


def test_a_failed_start_is_told_in_its_own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The status of an earlier process stays where one ends before it begins."""
    (tmp_path / "a").mkdir()
    write_status(tmp_path / "a", "failed", "killed long ago")

    def start(role: str, file: Path, *, resume: bool) -> subprocess.Popen[bytes]:
        (file.parent / "output.log").write_text("error: killed long ago\nerror: today's reason\n")
        return subprocess.Popen(["sh", "-c", "exit 12"], stdin=subprocess.PIPE)

    monkeypatch.setattr(launch, "_start", start)
    processes = launch.Processes({"a": tmp_path / "a" / "config.toml"}, {"a": "passive"}, resume=True)
    with pytest.raises(StorageError, match=r"^today's reason$"):
        processes.wait(lambda event: None)


def test_a_stopped_party_names_the_command_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(role: str, file: Path, *, resume: bool) -> subprocess.Popen[bytes]:
        return subprocess.Popen(["sh", "-c", "exit 130"], stdin=subprocess.PIPE)

    monkeypatch.setattr(launch, "_start", start)
    home = tmp_path / "a run"
    (home / "a").mkdir(parents=True)
    processes = launch.Processes({"a": home / "a" / "config.toml"}, {"a": "passive"})
    with pytest.raises(UnavailableError) as stopped:
        processes.wait(lambda event: None)
    assert str(stopped.value) == f"party 'a' was stopped by a signal: go on with vflens resume '{home}'"
