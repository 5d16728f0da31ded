"""Rounds in which only some clients train: drawn by the server, equal bits over both links and restarts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from accidents import Fuse, Interrupted, Killed, over_grpc, rebuild
from horizontal import clients_of, deal, federation, learned, server_of, table
from laboratory import close, transcripts
from oneprocess import LocalFederation
from stubparty import short_folder
from thinned import thinned

from vflens.config import load_party
from vflens.errors import ConfigError
from vflens.experiments.run.horizontal.experiment import HorizontalExperiment
from vflens.types import Point

TABLES = {
    name: table(rows, seed) for seed, (name, rows) in enumerate({"a": 30, "b": 17, "c": 23, "d": 20}.items())
}
ROUNDS = 6
PARTIAL: dict[str, Any] = {
    "training": {"optimizer": "sgd", "learning_rate": 0.5, "batch_size": 8},
    "horizontal": {"rounds": ROUNDS, "participants": 2},
    "defenses": [{"name": "dp_gaussian", "clip": 0.5}],
    "limits": {"checkpoint_steps": 2},
}
#: Every client keeps a bottom model of its own, which learns only in the rounds that the client is drawn for.
PRIVATE: dict[str, Any] = {
    **PARTIAL,
    "model": {"architecture": "mlp", "width": 5, "hidden": [6], "top": [4], "dropout": 0.3},
    "training": {"batch_size": 8, "learning_rate": 0.01},
    "horizontal": {**PARTIAL["horizontal"], "method": "lg_fedavg"},
    "defenses": [{"name": "passport"}, *PARTIAL["defenses"]],
}
KINDS: dict[str, dict[str, Any]] = {
    "whole": PARTIAL,
    "sampled": {**PARTIAL, "transcript": {"every": 2}},
    "private": PRIVATE,
}
Bits = tuple[dict[str, bytes], dict[str, str]]


def bits(local: LocalFederation, home: Path) -> Bits:
    """What every party has in the end, and what it received."""
    close(local)
    return learned(local), transcripts(home)


def participants(local: LocalFederation) -> list[list[str]]:
    """Who sent an update in each round, as the server's transcript has it."""
    found: list[list[str]] = [[] for _ in range(server_of(local).prepared.epochs)]
    for released in server_of(local).transcript.select(Point.UPDATE):
        found[released.exchange.round].append(released.sender)
    return found


def test_scenarios_train_the_same_clients_on_the_same_batches(tmp_path: Path) -> None:
    settings = {**PARTIAL, "defenses": []}
    ends = []
    for name in ("run", "other"):
        files = deal(tmp_path / name, TABLES, **settings)
        for file in files.values():
            file.write_text(
                file.read_text(encoding="utf-8").replace("tiny/run", f"tiny/{name}"), encoding="utf-8"
            )
        local = federation(files)
        local.run()
        assert server_of(local).prepared.run == f"tiny/{name}"
        ends.append((participants(local), learned(local)))
    assert ends[0] == ends[1]


@dataclass(frozen=True)
class Whole:
    """Settings, and what an uninterrupted run of them ends with."""

    settings: dict[str, Any]
    bits: Bits


def run_whole(home: Path, settings: dict[str, Any]) -> Whole:
    """An uninterrupted run."""
    local = federation(deal(home, TABLES, **settings))
    local.run()
    return Whole(settings, bits(local, home))


@pytest.fixture(scope="module", params=KINDS)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """With the transcripts of all rounds, or of every second; or with private bottom models."""
    return run_whole(tmp_path_factory.mktemp("whole"), KINDS[request.param])


def test_so_many_clients_train_in_a_round_and_all_have_the_last_parameters(tmp_path: Path) -> None:
    local = federation(deal(tmp_path, TABLES, **PARTIAL))
    local.run()
    drawn = participants(local)
    assert all(len(set(names)) == len(names) == 2 and names == sorted(names) for names in drawn)
    assert len(set(map(tuple, drawn))) > 1
    assert set().union(*drawn) == set(TABLES)
    counted = Counter(name for names in drawn for name in names)
    end = server_of(local).parameters
    for name, client in clients_of(local).items():
        got = [r.exchange.step for r in client.transcript.select(Point.PARAMETERS)]
        assert got == [number for number, names in enumerate(drawn) if name in names] + [ROUNDS]
        assert all(np.array_equal(value, end[key]) for key, value in client.run.model.parameters().items())
    rows = pq.read_table(tmp_path / "server" / "metrics.parquet").to_pylist()
    assert {r["target"]: r["value"] for r in rows if r["metric"] == "rounds"} == counted


@pytest.mark.parametrize("weights", ["rows", "equal"])
def test_the_mean_is_that_of_the_participants(tmp_path: Path, weights: str) -> None:
    horizontal = {**PARTIAL["horizontal"], "weights": weights}
    local = federation(deal(tmp_path, TABLES, **{**PARTIAL, "horizontal": horizontal}))
    server = server_of(local)
    server.prepare()
    expected = {name: value.copy() for name, value in server.parameters.items()}
    server.train()
    rows = {
        name: int(np.count_nonzero(t.split == 0)) if weights == "rows" else 1 for name, t in TABLES.items()
    }
    sent: dict[int, list[tuple[int, Any]]] = {}
    for released in server.transcript.select(Point.UPDATE):
        sent.setdefault(released.exchange.round, []).append((rows[released.sender], released))
    assert sorted(sent) == list(range(ROUNDS))
    for updates in sent.values():
        whole = sum(n for n, _ in updates)
        for name, value in expected.items():
            expected[name] = value + sum(n * r.tensor(name) for n, r in updates) / whole
    for name, value in server.parameters.items():
        np.testing.assert_allclose(value, expected[name], rtol=0, atol=1e-12)
    close(local)


def test_both_links_give_the_same_bits(whole: Whole) -> None:
    with short_folder() as home:
        local = federation(deal(home, TABLES, **whole.settings))
        with over_grpc(local):
            local.leader.lead()
            local.complete()
        assert bits(local, home) == whole.bits


@pytest.mark.parametrize(("asked", "who"), thinned(product((1, 2), ("a", "server", "everybody"))))
def test_a_restart_changes_no_bit(tmp_path: Path, whole: Whole, who: str, asked: int) -> None:
    """ "b" gets the parameters of so many of its rounds; then a party is started again."""
    local = federation(deal(tmp_path, TABLES, **whole.settings))
    server = server_of(local)
    server.prepare()
    server.links["b"] = fuse = Fuse(server.links["b"], asked)
    with pytest.raises(Interrupted):
        server.train()
    assert server.recovery.learned >= asked - 1
    server.links["b"] = fuse.inner
    for name in list(local.parties) if who == "everybody" else [who]:
        rebuild(local, name)
    server_of(local).rejoin()
    server_of(local).lead()
    local.complete()
    assert bits(local, tmp_path) == whole.bits


def test_a_client_killed_in_a_local_batch_learns_the_round_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It dies in the second batch of its second round: its bottom model has learned from the first."""
    expected = run_whole(tmp_path / "whole", PRIVATE).bits
    local = federation(deal(tmp_path / "killed", TABLES, **PRIVATE))
    server, client = server_of(local), clients_of(local)["a"]
    server.prepare()
    per_round = -(-server.prepared.parties[0].train_rows // PRIVATE["training"]["batch_size"])
    learn, done = client.run.model.learn, list[int]()

    def dying(*batch: Any) -> None:
        if len(done) == per_round + 1:
            raise Killed
        learn(*batch)
        done.append(1)

    monkeypatch.setattr(client.run.model, "learn", dying)
    with pytest.raises(Killed):
        server.train()
    assert len(done) == per_round + 1
    rebuild(local, "a")
    server_of(local).lead()
    local.complete()
    assert bits(local, tmp_path / "killed") == expected


def test_a_client_that_no_round_needed_ends_well_though_its_defence_never_acted(tmp_path: Path) -> None:
    local = federation(deal(tmp_path, TABLES, **{**PARTIAL, "horizontal": {"rounds": 1, "participants": 1}}))
    local.run()
    ((drawn,), *_) = participants(local)
    idle = next(client for name, client in clients_of(local).items() if name != drawn)
    assert idle.recovery.learned == 1
    assert not idle.gate.heads["digests"].records


def test_more_participants_than_clients_are_refused(tmp_path: Path) -> None:
    many = {**PARTIAL, "horizontal": {"rounds": 2, "participants": 5}}
    sentence = r"horizontal.participants = 5 of 4 clients: draw at most 4, or leave it out"
    with pytest.raises(ConfigError, match=sentence):
        load_party(deal(tmp_path, TABLES, **many)["server"])
    with pytest.raises(ValueError, match=sentence):
        HorizontalExperiment.model_validate(
            {
                "name": "x",
                "data": {"name": "digits"},
                "parties": {"clients": 4},
                "horizontal": many["horizontal"],
            }
        )
