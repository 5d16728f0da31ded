"""A dictionary of candidate ids: with a party's keys it names every digest under hmac, none under psi."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from commandline import Run
from laboratory import THREE, deal, experiment, federation
from oneprocess import LocalFederation

from vflens.clients.vertical import identification
from vflens.experiments.offline import dictionary
from vflens.types import AlignMode

KNOWN = bytes(32)  # a key that everybody has


def _aligned(home: Path, mode: AlignMode) -> LocalFederation:
    """Four parties that share 63 of their ids; the dictionary below ``home`` has the ids of all, and more."""
    local = federation(home, align={"mode": mode}, parties=THREE, overlap=0.7)
    local.coordinator.prepare()
    ids = {i.decode() for party in local.data_parties.values() for i in party.table.ids}
    (home / "ids.txt").write_text("\n".join([*sorted(ids), "nobody", ""]), encoding="utf-8")
    return local


def _tried(vflens: Run, home: Path, by: str) -> dict[str, dict[str, int]]:
    given = ("--config", home / by / "config.toml", "--candidates", home / "ids.txt")
    found = json.loads(vflens("dictionary", home / "coordinator", *given, "--json").out)
    assert found["candidates"] > 63
    return dict(found["parties"])


@pytest.mark.parametrize("by", ["active", "b"])
@pytest.mark.parametrize("mode", ["hmac", "psi"])
def test_every_digest_under_hmac_and_none_under_psi(
    tmp_path: Path, vflens: Run, mode: AlignMode, by: str
) -> None:
    local = _aligned(tmp_path, mode)
    ids = {name: len(party.table.ids) for name, party in local.data_parties.items() if name != by}
    assert min(ids.values()) > 63  # some of them are not common
    found = _tried(vflens, tmp_path, by)
    assert found == {
        name: {"ids": n, "named": n if mode == "hmac" else 0, "common": found[name]["common"]}
        for name, n in ids.items()
    }
    assert min(party["common"] for party in found.values()) >= 63


def test_the_attack_finds_ids_that_are_blinded_by_a_known_key(
    tmp_path: Path, vflens: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (identification, dictionary):
        monkeypatch.setattr(module, "blinding_key", lambda secret, salts: KNOWN)
    local = _aligned(tmp_path, "psi")
    found = _tried(vflens, tmp_path, "active")
    assert {name: p["named"] for name, p in found.items()} == {
        name: len(party.table.ids) for name, party in local.passive.items()
    }


def test_it_says_so_in_words(tmp_path: Path, vflens: Run) -> None:
    _aligned(tmp_path, "psi")
    given = ("--config", tmp_path / "b/config.toml", "--candidates", tmp_path / "ids.txt")
    said = vflens("dictionary", tmp_path / "coordinator", *given).out
    assert "'active': 0 of " in said
    assert " candidates under psi; the alignment itself says that " in said


def test_refusals(tmp_path: Path, refused: Callable[..., str]) -> None:
    local = _aligned(tmp_path, "hmac")
    folder, ids = tmp_path / "coordinator", tmp_path / "ids.txt"
    own = tmp_path / "a/config.toml"
    for config in (folder / "config.toml", deal(experiment(tmp_path / "x"), tmp_path / "x")["passive"]):
        said = refused(2, "dictionary", folder, "--config", config, "--candidates", ids)
        assert (
            said == f"{config} is not that of a data party of the run in {folder}: give the one it ran with"
        )
    said = refused(12, "dictionary", tmp_path / "a", "--config", own, "--candidates", ids)
    assert said.endswith("give the coordinator's folder of a run with lab = true")
    (folder / "alignment.npz").write_bytes((tmp_path / "a/order.npz").read_bytes())
    said = refused(12, "dictionary", folder, "--config", own, "--candidates", ids)
    assert said.endswith("alignment.npz holds no digests of row ids: use a folder that nobody changed")
    local.coordinator.config.out.joinpath("alignment.npz").unlink()
    said = refused(12, "dictionary", folder, "--config", own, "--candidates", ids)
    assert "holds no readable arrays" in said


def test_candidates_that_cannot_be_read_are_refused(tmp_path: Path, refused: Callable[..., str]) -> None:
    _aligned(tmp_path, "psi")
    given = ("--config", tmp_path / "a/config.toml", "--candidates", tmp_path / "none.txt")
    said = refused(3, "dictionary", tmp_path / "coordinator", *given)
    assert said.endswith(
        "none.txt cannot be read (No such file or directory): give a text with an id on each line"
    )


def test_outside_lab_mode_no_digest_is_kept(tmp_path: Path) -> None:
    local = federation(tmp_path, lab=False)
    local.coordinator.prepare()
    assert not (tmp_path / "coordinator/alignment.npz").exists()
