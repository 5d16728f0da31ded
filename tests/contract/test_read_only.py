"""Looking at another party's folder changes nothing in it, and nothing that a link in it leads to."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from commandline import Run
from laboratory import federation

pytest.importorskip("torch")

_PMC = ("--attack", "pmc", "--set", "steps=1", "--set", "fine_tune=true", "--set", "fine_tune_steps=1")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of a finished run of a split network, whose passive party was granted some labels."""
    home = tmp_path_factory.mktemp("finished") / "run"
    federation(
        home,
        data={"name": "synthetic", "rows": 120, "features": 7, "classes": 2, "informative": 4},
        model={"architecture": "mlp", "width": 8},
        attacks=[{"name": "pmc", "at": "passive", "steps": 1}],
        disclose=[{"what": "labels", "to": "passive", "rows": 12}],
        training={"epochs": 2, "batch_size": 20, "learning_rate": 0.05},
    ).run()
    return home


@pytest.fixture
def home(finished: Path, tmp_path: Path) -> Path:
    """A copy of them, to be changed."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


def _state(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Mode, time of the last change and bytes of everything below ``folder``."""
    facts = {file: file.lstat() for file in sorted(folder.rglob("*"))}
    return {
        str(file): (s.st_mode, s.st_mtime_ns, file.read_bytes() if file.is_file() else b"")
        for file, s in facts.items()
    }


@pytest.mark.parametrize(
    "command",
    [
        ("attack", "passive", *_PMC, "--out", "../estimate.npz"),
        ("report", ".", "--out", "../report.html"),
        ("audit-log", "."),
        ("ledger", "."),
        ("compare", ".", "."),
    ],
    ids=lambda command: str(command[0]),
)
def test_a_command_that_reads_a_run_leaves_it_as_it_was(
    home: Path, vflens: Run, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    before = _state(home)
    assert vflens(*command).code == 0
    assert _state(home) == before


@pytest.mark.parametrize("name", ["released/payload.bin", "transcript", "state.json"])
def test_an_attack_refuses_links_in_the_folder_that_it_rebuilds(
    home: Path, vflens: Run, name: str, tmp_path: Path
) -> None:
    mine = tmp_path / "diary.txt"
    mine.write_text("years of work\n" * 1000)
    folder = home / "passive"
    for log in ("index.jsonl", "chain.bin"):
        (folder / "released" / log).write_bytes(b"")
    (folder / name).rename(tmp_path / "gone")
    (folder / name).symlink_to(tmp_path / "gone" if name == "transcript" else mine)
    (folder / "lock").unlink(missing_ok=True)
    (folder / "lock").symlink_to(tmp_path / "new")
    before = _state(tmp_path)
    code, _, error = vflens("attack", folder, *_PMC, "--out", tmp_path / "estimate.npz")
    assert code == 12
    assert f"{folder / name} is a link, which may lead anywhere: " in error
    assert _state(tmp_path) == before


@pytest.mark.parametrize("name", ["metrics.parquet", "transcript", "estimates/more.npz", "config.toml"])
@pytest.mark.parametrize("command", ["report", "ledger", "verify-log", "dpia"])
def test_a_link_in_a_partys_folder_is_refused(
    home: Path, vflens: Run, name: str, command: str, tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    link = home / "passive" / name
    if link.exists():
        link.rename(mine / link.name)
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(mine / link.name)
    out = ("--out", tmp_path / "page.html") if command in ("report", "dpia") else ()
    code, _, error = vflens(command, home, *out)
    assert code == 3
    assert f"{link} is a link, which may lead anywhere" in error
