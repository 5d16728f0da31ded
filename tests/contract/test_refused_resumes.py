"""What is refused when a party comes back: a folder in use, another version, an older disk; full disks."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from accidents import (
    anew,
    over_grpc,
    rebuild,
    train_until,
)
from laboratory import (
    close,
    deal,
    experiment,
    federation,
    fingerprint,
)
from nonempty import nonempty
from oneprocess import LocalFederation

from vflens.config import PartyConfig, PassiveConfig, load_party
from vflens.errors import ConfigError, StateError, StorageError
from vflens.services import process
from vflens.services.folder import begin, exclusive

PARTIES = ("passive", "active", "coordinator")


@pytest.fixture
def config(tmp_path: Path) -> PartyConfig:
    """A passive party that resumes an unfinished run."""
    found = load_party(deal(experiment(tmp_path), tmp_path)["passive"]).model_copy(update={"resume": True})
    begin(found)
    return found


def test_a_party_is_not_resumed_while_its_old_process_runs(
    config: PassiveConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "stop_on_signals", lambda: None)
    before = (config.out / "status.json").read_bytes()
    with exclusive(config.out), pytest.raises(ConfigError) as refused:
        process.serve(config, lambda _: None, lambda stage, done, total: None)
    assert str(refused.value) == (
        f"run folder {config.out} is in use by another party's process: stop it, or choose another `out`"
    )
    assert (config.out / "status.json").read_bytes() == before


def test_a_run_is_not_resumed_by_another_version(
    config: PassiveConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vflens.services.same_run._version", lambda _: "9.9")
    with pytest.raises(
        ConfigError, match=r"^the version of vflens of party 'passive' is not that of the run in"
    ):
        begin(config)


@pytest.mark.parametrize("who", ["passive", "active"])
def test_a_data_party_of_another_version_is_refused_by_the_coordinator(tmp_path: Path, who: str) -> None:
    local = trained_until(tmp_path, 2)
    party = local.data_parties[who]
    standing = replace(party.standing(), version="9.9")
    party.standing = lambda: standing  # type: ignore[method-assign]
    with (
        over_grpc(local),
        pytest.raises(StateError, match=r"with another version of vflens \(0\.\d\.\d, here 9\.9\)"),
    ):
        local.coordinator.rejoin()


def test_a_coordinator_of_another_version_is_refused_by_a_data_party(tmp_path: Path) -> None:
    local = trained_until(tmp_path, 2)
    standing = replace(local.coordinator.standing(), version="9.9")
    local.coordinator.standing = lambda: standing  # type: ignore[method-assign]
    before = fingerprint(local)
    with (
        over_grpc(local),
        pytest.raises(
            StateError,
            match=r"^party 'active': party 'coordinator' came back with another version of vflens \(9\.9,",
        ),
    ):
        local.coordinator.rejoin()
    assert fingerprint(local) == before


def trained_until(home: Path, step: int, **changes: Any) -> LocalFederation:
    local = federation(home, **changes)
    local.coordinator.prepare()
    train_until(local, step)
    return local


def older(local: LocalFederation, who: str, copy: Path) -> None:
    """Start ``who`` again on an earlier ``copy`` of its folder."""
    old = local.parties[who]
    old.close()
    shutil.rmtree(old.folder)
    shutil.copytree(copy, old.folder)
    new = anew(old, old.links)
    new.resume()
    local.join(new)


@pytest.mark.parametrize("who", PARTIES)
def test_an_older_disk_is_refused_in_training(tmp_path: Path, who: str) -> None:
    """One that lost the last step alone is not older: it learned from it after its reply."""
    local = trained_until(tmp_path / "run", 3)
    shutil.copytree(local.parties[who].folder, tmp_path / "copy")
    rebuild(local, "coordinator")
    train_until(local, 4)
    older(local, who, tmp_path / "copy")
    with pytest.raises(
        StateError, match=rf"^party '{who}' came back older than it was, with \d training steps"
    ):
        local.coordinator.rejoin()


@pytest.mark.parametrize("who", PARTIES)
def test_an_older_disk_is_refused_after_training(tmp_path: Path, who: str) -> None:
    local = federation(tmp_path / "run")
    local.coordinator.prepare()
    local.coordinator.train()
    shutil.copytree(local.parties[who].folder, tmp_path / "copy")
    local.coordinator.lead()
    local.active.predictions.ask(local.coordinator.aligned.predict[:3])
    older(local, who, tmp_path / "copy")
    with pytest.raises(
        StateError, match=rf"^party '{who}' came back older than it was, with \d (stages|released)"
    ):
        local.coordinator.rejoin()


@pytest.mark.parametrize("who", ["passive", "active"])
def test_a_shortened_log_of_released_rows_is_refused(tmp_path: Path, who: str) -> None:
    local = federation(tmp_path)
    local.coordinator.lead()
    for row in range(3):
        local.active.predictions.ask(local.coordinator.aligned.predict[row : row + 1])
    index = local.parties[who].folder / "released/index.jsonl"
    lines = index.read_bytes().splitlines(keepends=True)
    local.parties[who].close()
    index.write_bytes(b"".join(lines[:-1]))
    new = anew(local.parties[who], local.parties[who].links)
    new.resume()
    local.join(new)
    with pytest.raises(
        StateError, match=rf"^party '{who}' came back older than it was, with 2 released rows where 3"
    ):
        local.coordinator.rejoin()


def test_a_folder_without_a_prepared_run_cannot_be_resumed(tmp_path: Path) -> None:
    local = federation(tmp_path)
    for party in nonempty(local.members()):
        with pytest.raises(
            StorageError, match=r"holds no federation .*: give the folder of a party that took part"
        ):
            party.resume()
    close(local)
