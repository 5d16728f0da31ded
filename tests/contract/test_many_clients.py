"""What a run of many clients does once: not for each pair of them, nor for those that nobody attacks."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from horizontal import deal, experiment, federation, table

from vflens.clients.horizontal.scoring import ClientScoring
from vflens.experiments.run import run as launcher
from vflens.experiments.run.any_experiment import AnyPartiesExperiment
from vflens.experiments.run.dealer import deal_tables
from vflens.member import member
from vflens.protocol.acts import Stop
from vflens.storage.chain import Head
from vflens.storage.sent_heads import SentHeads, received_in
from vflens.wire.heads import decode_stop, encode_stop

TABLES = {name: table(17, i) for i, name in enumerate("abcd")}


def test_each_member_reads_its_heads_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Counter[Path]()

    def noted(folder: Path) -> dict[str, SentHeads]:
        read[folder] += 1
        return received_in(folder)

    monkeypatch.setattr(member, "received_in", noted)
    federation(deal(tmp_path, TABLES)).run()
    assert set(read.values()) == {1}
    assert set(received_in(tmp_path / "server")) == set(TABLES)
    assert set(received_in(tmp_path / "a")) == {*TABLES, "server"} - {"a"}


@pytest.mark.parametrize(("attacks", "made"), [([], 0), ([{"name": "softmax_inversion"}], len(TABLES))])
def test_only_attacked_clients_make_their_scoring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attacks: list[Any], made: int
) -> None:
    clients: list[str] = []
    plain = ClientScoring.__init__

    def noted(scoring: ClientScoring, client: Any, *run: Any) -> None:
        clients.append(client.name)
        plain(scoring, client, *run)

    monkeypatch.setattr(ClientScoring, "__init__", noted)
    training = {"batch_size": 1, "learning_rate": 0.5, "optimizer": "sgd"}
    rounds = {"rounds": 1, "local_steps": 1}
    federation(deal(tmp_path, TABLES, training=training, horizontal=rounds, attacks=attacks)).run()
    assert len(clients) == made == len(set(clients))


def test_clients_of_one_process_share_the_heads_of_all() -> None:
    heads = {name: SentHeads({"transcript": Head(3, bytes(32))}) for name in TABLES}
    message = encode_stop(Stop("many/run", "", heads))
    assert decode_stop(message).heads == heads
    assert decode_stop(message) is decode_stop(message)


def test_the_launcher_keeps_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dealt: list[Any] = []

    def noted(asked: AnyPartiesExperiment) -> Any:
        tables = deal_tables(asked)
        dealt.extend(weakref.ref(one.features) for one in tables.values())
        return tables

    def checked(*_: object) -> None:
        gc.collect()
        assert [ref() for ref in dealt] == [None, None]

    monkeypatch.setattr(launcher, "deal_tables", noted)
    monkeypatch.setattr(launcher, "_run_one", checked)
    data = {"name": "synthetic", "rows": 60, "features": 6, "classes": 2}
    asked = experiment(tmp_path, data=data, parties={"clients": 2}, horizontal={"rounds": 1})
    assert [*launcher.begun(asked, in_process=True)]
    assert len(dealt) == 2
