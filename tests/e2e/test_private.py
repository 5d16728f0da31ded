"""What a party writes is its user's alone, whatever the umask; what is to be shown follows the umask."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commandline import Run
from laboratory import deal
from processes import experiment_file, forked

from vflens.experiments.pages.page import write_page
from vflens.experiments.run.loading import load_experiment
from vflens.storage.private import owner_only


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def modes(folder: Path) -> dict[str, set[int]]:
    """The modes of all files and of all folders, ``folder`` included."""
    inside = [folder, *folder.rglob("*")]
    return {
        "files": {mode(p) for p in inside if p.is_file()},
        "folders": {mode(p) for p in inside if p.is_dir()},
    }


@pytest.fixture
def dealt(tmp_path: Path) -> Path:
    """One dealt folder a party, of different owners."""
    deal(load_experiment(experiment_file(tmp_path, lab=False)), tmp_path / "dealt")
    return tmp_path / "dealt"


@pytest.fixture
def umask() -> Iterator[Callable[[int], None]]:
    """Sets the umask, for this test."""
    before = os.umask(0)

    def set_to(number: int) -> None:
        os.umask(number)

    yield set_to
    os.umask(before)


@pytest.mark.parametrize("how", [[], ["--in-process"]], ids=["processes", "in process"])
def test_a_run_is_its_users_alone(tmp_path: Path, how: list[str]) -> None:
    done = forked("run", str(experiment_file(tmp_path)), *how, umask=0)
    assert done.returncode == 0, done.stderr
    home = tmp_path / "runs/tiny"
    assert mode(home) == 0o700
    for party in ("passive", "active", "coordinator"):
        found = modes(home / "run" / party)
        assert found == {"files": {0o600}, "folders": {0o700}}
    assert mode(home / "report.html") == 0o666  # it may be shown: a copy of it needs no chmod


@pytest.mark.parametrize("number", [0o022, 0o027, 0o077])
def test_pages_and_their_folders_honour_the_umask(
    tmp_path: Path, umask: Callable[[int], None], number: int
) -> None:
    umask(number)
    write_page(tmp_path / "new" / "page.html", "text")
    assert mode(tmp_path / "new" / "page.html") == 0o666 & ~number
    assert mode(tmp_path / "new") == 0o777 & ~number


def test_the_umask_comes_back(tmp_path: Path, umask: Callable[[int], None]) -> None:
    umask(0o022)
    with owner_only():
        (tmp_path / "private").touch()
    (tmp_path / "shown").touch()
    assert (mode(tmp_path / "private"), mode(tmp_path / "shown")) == (0o600, 0o644)


def test_an_estimate_is_the_adversarys_alone(
    vflens: Run, finished_run: Path, tmp_path: Path, umask: Callable[[int], None]
) -> None:
    umask(0)
    out = tmp_path / "estimate.npz"
    assert vflens("attack", finished_run / "run/active", "--attack", "half", "--out", out).code == 0
    assert mode(out) == 0o600


@pytest.mark.parametrize("permissions", [0o755, 0o750, 0o701])
def test_a_run_folder_that_others_can_open_is_refused(
    vflens: Run, refused: Callable[..., str], dealt: Path, permissions: int
) -> None:
    home = dealt / "passive"
    home.chmod(permissions)
    sentence = (
        f"run folder {home} is open to other users of this machine (mode {permissions:o}): chmod 700 {home}, "
        "or choose another `out`"
    )
    for command in (("check", home / "config.toml"), ("serve", "passive", "--config", home / "config.toml")):
        assert refused(12, *command) == sentence
    experiment = experiment_file(dealt.parent)
    assert refused(12, "datasets", "split", experiment, "--out", dealt) == sentence
    _follow(sentence)
    assert vflens("check", home / "config.toml").code == 0


@pytest.mark.parametrize("permissions", [0o644, 0o640, 0o602])
def test_secrets_in_a_file_that_others_can_open_are_refused(
    vflens: Run, refused: Callable[..., str], dealt: Path, permissions: int
) -> None:
    file = dealt / "coordinator" / "config.toml"
    file.chmod(permissions)
    sentence = refused(2, "check", file)
    assert sentence == refused(2, "serve", "coordinator", "--config", file)
    assert sentence == (
        f"{file} holds secrets (peers.active.token, peers.passive.token, seed) and is open to other users of "
        "this machine "
        f"(mode {permissions:o}): chmod 600 {file}"
    )
    _follow(sentence)
    assert vflens("check", file).code == 0


def test_in_lab_mode_secrets_follow_from_a_number_anyway(vflens: Run, tmp_path: Path) -> None:
    file = deal(load_experiment(experiment_file(tmp_path, lab=True)), tmp_path / "dealt")["coordinator"]
    file.chmod(0o644)
    assert vflens("check", file).code == 0


def test_reading_asks_for_no_private_folder(vflens: Run, finished_run: Path, tmp_path: Path) -> None:
    """Who merges folders may have them from others, as archives unpack them."""
    parties = sorted((finished_run / "run").iterdir())
    try:
        for party in parties:
            party.chmod(0o755)
        assert vflens("report", *parties, "--out", tmp_path / "r.html").code == 0
    finally:
        for party in parties:
            party.chmod(0o700)


def _follow(sentence: str) -> None:
    """Run the command that a refusal names, word for word."""
    command = sentence.rpartition(": ")[2].partition(", or")[0]
    subprocess.run(shlex.split(command), check=True)
