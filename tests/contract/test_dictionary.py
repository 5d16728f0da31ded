"""A dictionary of candidate ids: with a party's keys it names every digest under hmac, none under psi."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from laboratory import THREE, federation
from oneprocess import LocalFederation

from vflens.clients.vertical import identification
from vflens.config import PartyConfig
from vflens.coordinator.vertical import coordinator
from vflens.coordinator.vertical.aligning import Lists, collect
from vflens.protocol.vertical.alignment import DIGEST_BYTES, digests
from vflens.protocol.vertical.blinding import blinded_ids, blinding_key
from vflens.randomness import secret_from_seed
from vflens.types import AlignMode, Array

KNOWN = bytes(32)  # a key that everybody has


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> list[Lists]:
    """What the coordinator got of the parties' row ids."""
    found = list[Lists]()

    def kept(*arguments: object) -> Lists:
        found.append(collect(*arguments))  # type: ignore[arg-type]
        return found[-1]

    monkeypatch.setattr(coordinator, "collect", kept)
    return found


def _aligned(home: Path, mode: AlignMode) -> LocalFederation:
    """Four parties that share 63 of their ids."""
    local = federation(home, align={"mode": mode}, parties=THREE, overlap=0.7)
    local.coordinator.prepare()
    return local


def _elements(found: bytes) -> set[bytes]:
    return {found[at : at + DIGEST_BYTES] for at in range(0, len(found), DIGEST_BYTES)}


def _digests(config: PartyConfig, lists: Lists, ids: Array) -> set[bytes]:
    """What the keys of ``config`` give of ``ids``, in lab mode."""
    if lists.mode == "psi":
        key = blinding_key(secret_from_seed(config.seed), lists.salts)
        return _elements(blinded_ids(ids, key, lists.salts))
    return _elements(digests(ids, dict(config.secrets())["alignment_key"].encode()))


def _named(local: LocalFederation, lists: Lists, by: str, *, key: bytes | None = None) -> dict[str, int]:
    """How many ids of each other party the keys of ``by`` name, of candidates that hold all ids and one more.

    With ``key`` the adversary blinds by it.
    """
    parties = local.data_parties
    ids = np.unique(np.concatenate([np.array([b"nobody"]), *(p.table.ids for p in parties.values())]))
    assert len(ids) > 64
    if key is None:
        known = _digests(parties[by].config, lists, ids)
    else:
        known = _elements(blinded_ids(ids, key, lists.salts))
    received = {
        name: _elements(lists.sent[name].digests) | _elements(lists.compared[name].digests)
        for name in parties.keys() - {by}
    }
    return {name: len(known & digests) for name, digests in received.items()}


@pytest.mark.parametrize("by", ["active", "b"])
@pytest.mark.parametrize("mode", ["hmac", "psi"])
def test_every_digest_under_hmac_and_none_under_psi(
    tmp_path: Path, collected: list[Lists], mode: AlignMode, by: str
) -> None:
    local = _aligned(tmp_path, mode)
    ids = {name: len(party.table.ids) for name, party in local.data_parties.items() if name != by}
    assert min(ids.values()) > 63  # some of them are not common
    (lists,) = collected
    assert _named(local, lists, by) == {name: n if mode == "hmac" else 0 for name, n in ids.items()}
    compared = {name: _elements(found.digests) for name, found in lists.compared.items()}
    assert len(set.intersection(*compared.values())) == 63


def test_the_attack_finds_ids_that_are_blinded_by_a_known_key(
    tmp_path: Path, collected: list[Lists], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identification, "blinding_key", lambda secret, salts: KNOWN)
    local = _aligned(tmp_path, "psi")
    assert _named(local, collected[0], "active", key=KNOWN) == {
        name: len(party.table.ids) for name, party in local.passive.items()
    }
