"""How the launcher starts and ends its processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from processes import eventually
from shells import scripted, shells

from vflens.errors import StorageError, UnavailableError
from vflens.experiments.run import processes as launch
from vflens.experiments.run.processes import Processes
from vflens.services.folder import write_status
from vflens.services.forking.forks import Forks


@pytest.fixture
def forks() -> Iterator[Forks]:
    with shells() as forks:
        yield forks


def launched(configs: dict[str, Path], forks: Forks, restart: int = 0) -> Processes:
    return Processes(configs, dict.fromkeys(configs, "passive"), forks, restart=restart)


def test_who_is_slow_to_stop_is_named_before_it_is_killed(
    tmp_path: Path, forks: Forks, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(launch, "_SILENT_SECONDS", 1.0)
    monkeypatch.setattr(launch, "_PATIENCE_SECONDS", 1.5)
    processes = launched(
        scripted(tmp_path, a="trap '' TERM; echo ready; exec sleep 600", b="echo ready; exec sleep 600"),
        forks,
    )
    eventually(lambda: all((tmp_path / party / "output.log").read_text() for party in "ab"))
    processes.stop()
    assert capsys.readouterr().err == "waiting up to 0.5 s for a to stop, then killing\n"
    with pytest.raises(UnavailableError, match=r"^party 'a' was killed by SIGKILL: go on with vflens resume"):
        processes.wait(lambda event: None)


def test_who_starts_no_party_any_more_is_named_with_what_can_be_resumed(tmp_path: Path, forks: Forks) -> None:
    forks._process.kill()
    killed = "^the process that starts the parties was killed by SIGKILL: go on with vflens resume"
    with pytest.raises(UnavailableError, match=f"{killed} {tmp_path.parent}"):
        launched(scripted(tmp_path, a="exec sleep 600"), forks)


def test_a_crash_loop_ends_with_its_first_cause(tmp_path: Path, forks: Forks) -> None:
    script = """echo "$*" >&2; case "$*" in *--resume) kill -6 $$;; *) kill -9 $$;; esac"""
    facts: list[object] = []
    with pytest.raises(
        UnavailableError,
        match=r"^party 'a' failed again after every restart; the first time: party 'a' was killed by SIGKILL",
    ):
        launched(scripted(tmp_path, a=script), forks, restart=2).wait(facts.append)
    serve = f"vflens serve passive --config {tmp_path}/a/config.toml"
    text = (tmp_path / "a/output.log").read_text()
    assert text.splitlines() == [serve, f"{serve} --resume", f"{serve} --resume"]
    assert len(facts) == 2


def test_a_party_that_is_killed_while_others_are_looked_at_is_started_again(
    tmp_path: Path, forks: Forks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had ended the run when the launcher first saw it dead, and then had it to restart."""
    monkeypatch.setattr(launch, "_END_SECONDS", 0.0)
    script = """case "$*" in *--resume) exit 0;; *) exec sleep 600;; esac"""
    processes = launched(scripted(tmp_path, a=script), forks, restart=1)
    look, killed = processes._start_again, list[int]()

    def late(*about: Any) -> Any:
        found = look(*about)
        if not killed:
            child = processes._children["a"]
            child.kill()
            killed.append(child.wait())
        return found

    monkeypatch.setattr(processes, "_start_again", late)
    processes.wait(lambda event: None)
    assert killed == [-9]


def test_a_failed_start_is_told_in_its_own_words(tmp_path: Path, forks: Forks) -> None:
    """The status of an earlier process stays where one ends before it begins."""
    configs = scripted(tmp_path, a="""echo "error: today's reason"; exit 12""")
    (tmp_path / "a/output.log").write_text("error: killed long ago\n")
    write_status(tmp_path / "a", "failed", "killed long ago")
    with pytest.raises(StorageError, match=r"^today's reason$"):
        launched(configs, forks).wait(lambda event: None)


def test_a_stopped_party_names_the_command_that_goes_on(tmp_path: Path, forks: Forks) -> None:
    home = tmp_path / "an experiment" / "run"
    with pytest.raises(UnavailableError) as stopped:
        launched(scripted(home, a="exit 130"), forks).wait(lambda event: None)
    assert (
        str(stopped.value) == f"party 'a' was stopped by a signal: go on with vflens resume '{home.parent}'"
    )
