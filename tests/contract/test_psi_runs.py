"""Runs of federations that align by private set intersection."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accidents import anew, over_grpc, rebuild
from laboratory import THREE, deal, experiment, federation, let_go_later
from nonempty import nonempty
from oneprocess import LocalFederation
from processes import change

from vflens.clients.vertical import identification
from vflens.clients.vertical.party import VerticalParty
from vflens.coordinator.vertical import aligning
from vflens.coordinator.vertical.aligning import collect
from vflens.errors import ConfigError, StateError, UnavailableError, VflensError
from vflens.experiments.verify_log import vertical
from vflens.experiments.verify_log.verify import verify_logs
from vflens.protocol.vertical import alignment, blinded_lists
from vflens.protocol.vertical.blinded_lists import noted_in
from vflens.protocol.vertical.blinding import blinded_ids, blinding_key
from vflens.protocol.vertical.row_ids import Blind, Blinded, Identify, Salt
from vflens.storage.files import load_arrays
from vflens.types import AlignMode, Array

PSI = {"align": {"mode": "psi"}}
WHOLE = {"epochs": 9, "batch_size": 200, "learning_rate": 1.0, "optimizer": "sgd"}


def _ids(local: LocalFederation, name: str) -> Array:
    """The party's ids in aligned order."""
    party = local.data_parties[name]
    return party.table.ids[load_arrays(party.folder / "order.npz")["order"]]


def _trained(home: Path, mode: AlignMode, **changes: Any) -> LocalFederation:
    local = federation(home, align={"mode": mode}, parties=THREE, overlap=0.9, **changes)
    local.coordinator.prepare()
    local.coordinator.train()
    return local


def test_the_mode_changes_the_order_of_rows_and_nothing_else(tmp_path: Path) -> None:
    """With whole batches the order changes sums in their last bits only."""
    psi, hmac = (_trained(tmp_path / mode, mode, training=WHOLE) for mode in ("psi", "hmac"))
    for name, party in nonempty(psi.data_parties.items()):
        one, other = _ids(psi, name), _ids(hmac, name)
        assert (one != other).any()
        for part in ("train", "predict"):
            rows = [getattr(local.coordinator.aligned, part) for local in (psi, hmac)]
            assert set(one[rows[0]].tolist()) == set(other[rows[1]].tolist())
        learned = hmac.data_parties[name].parameters()
        assert any(np.abs(value).max() > 0.01 for value in learned.values())
        for kind, value in nonempty(party.parameters().items()):
            np.testing.assert_allclose(value, learned[kind], rtol=0, atol=1e-12)  # of sums of 65 rows


def test_one_seed_gives_one_result(tmp_path: Path) -> None:
    one, other = (_trained(tmp_path / name, "psi") for name in ("one", "other"))
    assert (_ids(one, "a") == _ids(other, "a")).all()
    for name, party in one.data_parties.items():
        for kind, value in party.parameters().items():
            assert value.tobytes() == other.data_parties[name].parameters()[kind].tobytes()


def test_a_refused_list_is_logged_with_its_size(tmp_path: Path) -> None:
    local = federation(tmp_path, **PSI, network={"transport": "unix"})
    target = local.passive["passive"]
    with over_grpc(local):
        link = local.coordinator.links["passive"]
        salts = b"".join(
            local.coordinator.links[p].call(Salt("tiny/run")).salt for p in ("active", "passive")
        )
        sent = local.coordinator.links["active"].call(Identify("tiny/run", salts, 0)).digests
        asked = Blind("tiny/run", salts, "active", 0, ids=90, elements=sent)
        assert len(link.call(asked).elements) == len(sent)
        for lie in (
            replace(asked, run="other/run"),
            replace(asked, elements=sent[32:] + sent[:32]),
            replace(asked, ids=10**12),
            replace(asked, party="guesses", ids=10**12),
        ):
            with pytest.raises(VflensError):
                link.call(lie)
    log = [
        json.loads(line) for line in (target.folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    blinded = [event for event in log if event["event"] == "blinds ids"]
    assert [(event["of"], event["ids"]) for event in blinded] == [("active", 90)]
    refusals = [event["error"] for event in log if event["event"] == "refused"]
    assert [r.partition(":")[0] for r in refusals] == [
        "run 'other/run' is not this party's",
        "blinded ids of 'active' from 0 on came with others before",
        "party 'active' has 1000000000000 ids and had 90 before",
        "party 'guesses' has 1000000000000 ids",
    ]


def test_a_peer_that_is_too_slow_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"call_seconds": 4}
    local = federation(tmp_path, **PSI, network={"transport": "unix"}, limits=limits)
    blind = VerticalParty.blind
    is_over = threading.Event()

    def slow(party: VerticalParty[Any], act: Blind) -> Blinded:
        if party.name == "passive":
            is_over.wait(60)
        return blind(party, act)

    monkeypatch.setattr(VerticalParty, "blind", slow)
    with over_grpc(local):
        try:
            with pytest.raises(UnavailableError, match=r"'passive'.* within 4 s"):
                local.coordinator.prepare()
        finally:
            is_over.set()


@pytest.mark.parametrize("mode", ["psi", "hmac"])
@pytest.mark.parametrize("lab", [False, True])
def test_a_restarted_party_has_the_places_that_it_had(tmp_path: Path, mode: AlignMode, lab: bool) -> None:
    """Its coordinator may align again, if it was killed too before it knew that all were prepared."""
    local = federation(tmp_path, align={"mode": mode}, lab=lab)
    local.coordinator.prepare()
    lists = collect(local.coordinator.links, "tiny/run", 1000, lambda stage, done, total: None)
    rebuild(local, "passive")
    again = collect(local.coordinator.links, "tiny/run", 1000, lambda stage, done, total: None)
    assert again.salts == lists.salts
    assert again.sent["passive"].digests == lists.sent["passive"].digests
    assert again.compared["active"].digests == lists.compared["active"].digests


def test_another_table_after_a_restart_begins_no_second_alignment(tmp_path: Path) -> None:
    local = federation(tmp_path, **PSI, lab=False)
    active, links = local.active, local.coordinator.links
    collect(links, "tiny/run", 1000, lambda stage, done, total: None)
    old = local.passive["passive"]
    old.close()
    local.join(anew(old, old.links))
    local.passive["passive"].table.features[0, 0] += 1
    with pytest.raises(
        StateError, match=r"^party 'active' began to align with other salts: a party has anoth"
    ):
        collect(links, "tiny/run", 1000, lambda stage, done, total: None)
    assert active.federation is None


def test_parties_that_align_in_different_ways_are_refused(tmp_path: Path) -> None:
    configs = deal(experiment(tmp_path, lab=False), tmp_path)
    change(configs["passive"], align={"mode": "psi"})
    local = let_go_later(LocalFederation(configs, lambda stage, done, total: None))
    with pytest.raises(
        ConfigError,
        match=r"^the data parties align in different ways \('active' by hmac, 'passive' by psi\): set",
    ):
        local.coordinator.prepare()


def test_progress_of_blinding_is_reported(tmp_path: Path) -> None:
    seen = list[tuple[str, int, int]]()
    configs = deal(experiment(tmp_path, **PSI, parties=THREE), tmp_path)
    local = let_go_later(LocalFederation(configs, lambda *stage: seen.append(stage)))
    local.coordinator.prepare()
    assert seen == [("blinding ids", 360 * hop, 1440) for hop in (1, 2, 3, 4)]


class TestAudit:
    """Who passes lists on could put guesses in their place: an audit of two folders sees it."""

    @pytest.fixture
    def local(self, tmp_path: Path) -> LocalFederation:
        return federation(tmp_path, **PSI, parties=THREE)

    def problems(self, home: Path, *parties: str) -> list[str]:
        (audited,) = verify_logs([home / party for party in parties])
        return [f"{f.party}: {f.problem}" for f in audited.found.findings]

    def test_lists_that_went_round_as_they_were_fit(self, local: LocalFederation, tmp_path: Path) -> None:
        local.run()
        assert self.problems(tmp_path, "coordinator", "active", "a", "b", "c") == []
        notes = {name: noted_in(tmp_path / name) for name in local.data_parties}
        assert {(n and (len(n.own), len(n.lists))) for n in notes.values()} == {(1, 3)}

    @pytest.mark.parametrize(("hop", "sender"), [(1, "a"), (2, "active")])
    def test_a_list_that_was_changed_on_its_way_is_found(
        self, local: LocalFederation, tmp_path: Path, hop: int, sender: str
    ) -> None:
        """The ids of ``a`` go to ``active``, then to ``b``."""
        receiver = {1: "active", 2: "b"}[hop]
        party = local.data_parties[receiver]
        blind = party.blind

        def told(act: Blind) -> Blinded:
            guess = blinded_ids(np.array([b"a guess"]), blinding_key(b"of the coordinator", b""), b"")
            lied = guess + act.elements[32:] if act.party == "a" else act.elements
            return blind(replace(act, elements=lied))

        party.blind = told  # type: ignore[method-assign]
        local.coordinator.prepare()
        text = (
            f"{receiver}: message 1 of the ids of 'a' that it blinded is not what {sender!r} gave: who "
            "passed it on could try guesses"
        )
        assert text in self.problems(tmp_path, sender, receiver)
        other = "c" if hop == 1 else "a"
        assert text not in self.problems(tmp_path, receiver, other)

    def test_a_list_without_its_end_is_found(
        self, local: LocalFederation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """``a`` gave three messages, and ``active`` was given two as all of its ids."""
        for module in (alignment, aligning, blinded_lists, identification, vertical):
            monkeypatch.setattr(module, "AT_ONCE", {"psi": 32, "hmac": 32})
        local.coordinator.prepare()
        file = tmp_path / "active/blinded.json"
        noted = json.loads(file.read_text(encoding="utf-8"))
        assert len(noted["lists"]["a"]["messages"]) == 3
        assert self.problems(tmp_path, "a", "active") == []
        noted["lists"]["a"] |= {"ids": 64, "messages": noted["lists"]["a"]["messages"][:2]}
        file.write_text(json.dumps(noted), encoding="utf-8")
        (problem,) = self.problems(tmp_path, "a", "active")
        assert problem.startswith("active: message 3 of the ids of 'a' that it blinded is not what 'a' gave")

    def test_other_salts_and_a_damaged_note_are_found(self, local: LocalFederation, tmp_path: Path) -> None:
        local.coordinator.prepare()
        file = tmp_path / "b/blinded.json"
        whole = file.read_text(encoding="utf-8")
        salts = json.loads(whole)["salts"]
        file.write_text(whole.replace(salts, "00" * 32), encoding="utf-8")
        names = sorted(local.data_parties)
        odd = [p for p in self.problems(tmp_path, *names) if "other salts" in p]
        assert odd == ["b: it began to align with other salts than the other data parties"]
        of_two = self.problems(tmp_path, "a", "b")  # nobody can say which
        assert {p[0] for p in of_two if "other salts" in p} == {"a", "b"}
        file.write_text("{", encoding="utf-8")
        (problem,) = (p for p in self.problems(tmp_path, "a", "b") if p.startswith("b: "))
        assert "blinded.json does not say what was blinded" in problem
