"""Audits of whole runs: of every kind, taken up again, and of clients with their server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import horizontal
import pytest
from accidents import rebuild_all, train_until
from horizontal import table
from laboratory import NOISY, THREE, close, federation, finish
from logaudits import audit_of, problems_in
from splitcases import CONCATENATED, STALE

from vflens.services.folder import write_status
from vflens.storage.chain import LINK_BYTES
from vflens.storage.journal import records
from vflens.storage.transcript import Transcript
from vflens.types import Point

SAMPLED = {"transcript": {"every": 3}}
KINDS: dict[str, dict[str, Any]] = {
    "summed": {"defenses": NOISY},
    "three passive parties": {"parties": THREE},
    "sampled": SAMPLED,
    "concatenated": CONCATENATED,
    "one step stale": STALE,
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_run_fits(tmp_path: Path, kind: str) -> None:
    local = federation(tmp_path, **KINDS[kind])
    local.run()
    audited = audit_of(tmp_path)
    assert audited.found.findings == []
    counts = {m.name: sum(1 for _ in records(m.folder / "transcript")) for m in local.members()}
    assert {name: logs["transcript"].head.records for name, logs in audited.logs.items()} == counts
    aggregator = "active" if local.coordinator.aligned.direct else "coordinator"
    predicted = len(local.coordinator.aligned.predict)
    for passive in local.passive:
        compared = audited.compared[passive, aggregator]
        assert compared["rows"] == predicted
        kept = local.coordinator.aligned.steps // KINDS[kind].get("transcript", {}).get("every", 1)
        assert compared["releases"] >= kept


def test_a_run_on_shares_fits_and_each_opening_is_compared_at_both_that_compute(tmp_path: Path) -> None:
    training = {"epochs": 2, "batch_size": 20, "optimizer": "sgd", "protection": "shares"}
    federation(tmp_path, parties=THREE, training=training).run()
    audited = audit_of(tmp_path)
    assert audited.found.findings == []
    messages = 2 * 2 * 4 + 1  # of eight steps, and the last
    assert audited.compared["a", "active"]["releases"] > messages
    assert audited.compared["active", "a"]["releases"] > messages
    records = Transcript(tmp_path / "a/transcript", party="a")
    lines = [n for n, r in enumerate(records, 1) if r.point is Point.OPENING]
    records.close()
    assert len(lines) == messages
    file = tmp_path / "active/released/digests.bin"
    file.write_bytes(file.read_bytes()[: -50 * 3])
    assert any("has no counterpart in what 'active' released" in p for p in problems_in(tmp_path))


def test_a_release_that_is_repeated_after_a_restart_has_one_digest(tmp_path: Path) -> None:
    local = federation(tmp_path)
    local.coordinator.prepare()
    train_until(local, 5)
    file = tmp_path / "active" / "released" / "digests.bin"
    before = file.read_bytes()
    rebuild_all(local)
    train_until(local, 6)
    found = file.read_bytes()
    assert found.startswith(before)
    made = [found[place : place + 50] for place in range(0, len(found), 50)]
    assert len(set(made)) == len(made) > len(before) // 50
    close(local)


@pytest.mark.parametrize("kind", ["summed", "sampled", "one step stale"])
def test_a_run_that_was_taken_up_again_fits(tmp_path: Path, kind: str) -> None:
    local = federation(tmp_path, **KINDS[kind])
    local.coordinator.prepare()
    train_until(local, 5)
    rebuild_all(local)
    local.coordinator.train()
    finish(local)
    close(local)
    for member in local.members():
        write_status(member.folder, "finished")
    assert problems_in(tmp_path) == []


def test_links_that_a_killed_party_did_not_write_are_written_when_it_is_taken_up(tmp_path: Path) -> None:
    local = federation(tmp_path)
    local.run()
    chain = tmp_path / "passive" / "transcript" / "chain.bin"
    whole = chain.read_bytes()
    for kept in (0, 5 * LINK_BYTES, 6 * LINK_BYTES + 7, len(whole)):
        chain.write_bytes(whole[:kept])
        Transcript(chain.parent, party="passive").close()
        assert chain.read_bytes() == whole
    chain.write_bytes(whole + bytes(LINK_BYTES))  # a loss of power took the record, not its link
    Transcript(chain.parent, party="passive").close()
    assert chain.read_bytes() == whole


CLIENTS = {"a": table(30, 1), "b": table(17, 2)}
ROUNDS: dict[str, dict[str, Any]] = {
    "fedavg": {"horizontal": {"rounds": 3}},
    "drawn": {"horizontal": {"rounds": 4, "participants": 1}},
    "sampled": {"horizontal": {"rounds": 3}, "transcript": {"every": 3}},
    "splitfed": {
        "horizontal": {"method": "splitfed", "rounds": 2},
        "model": {"architecture": "mlp", "width": 5, "hidden": [], "top": [4]},
    },
}


@pytest.mark.parametrize("kind", ROUNDS)
def test_what_is_missing_between_clients_and_server_is_found(tmp_path: Path, kind: str) -> None:
    """A release more at its sender has no record at its receiver; a whole run lacks none."""
    settings = {"training": {"batch_size": 8, "learning_rate": 0.01}, **ROUNDS[kind]}
    local = horizontal.federation(horizontal.deal(tmp_path, CLIENTS, **settings))
    local.run()
    close(local)
    for name in local.parties:
        write_status(tmp_path / name, "finished")
    assert problems_in(tmp_path) == []
    due = {"a": ["server"], "server": [] if kind == "drawn" else ["a", "b"]}
    for sender, receivers in due.items():
        digests = tmp_path / sender / "released" / "digests.bin"
        data = digests.read_bytes()
        first = next(i for i in range(0, len(data), 50) if data[i + 1] != list(Point).index(Point.GRADIENT))
        odd = data[first : first + 2] + (101).to_bytes(8, "little") + (7).to_bytes(8, "little") + bytes(32)
        digests.write_bytes(data + odd)
        lacking = [p for p in problems_in(tmp_path) if f"release of {sender!r} is missing" in p]
        assert [p.split(":")[0] for p in lacking] == receivers
        digests.write_bytes(data)
