"""A few seconds of what ``make soak`` does for half an hour, and what its parts call a failure."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import killing
import memory
import messages
import numpy as np
import pytest
import returning
import soak
from google.protobuf.message import DecodeError
from mutation import mutated
from nonempty import nonempty
from world import quick

from vflens.protocol.acts import Act, Deliver, Step, Submission
from vflens.wire.messages import RPCS

NUMBER = 1_998  # messages: as many in each round
#: Nothing is disclosed there, labels that are numbers are not, or the passive party does not attack.
NOT_AMONG: dict[str, set[tuple[str, type[Act[Any]]]]] = {
    "active aggregates": {("passive", Deliver), ("active", Deliver), ("active", Submission)},
    "shares": {("active", Submission)},
    "number": {("passive", Deliver)},
    "number on shares": {("passive", Deliver), ("active", Submission)},
}


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[messages.Rounds]:
    with quick():
        yield messages.Rounds(tmp_path_factory.mktemp("rounds"))


@pytest.mark.parametrize("moment", messages.MOMENTS)
@pytest.mark.parametrize("kind", messages.SETTINGS)
def test_mutated_messages(rounds: messages.Rounds, kind: str, moment: str) -> None:
    number = NUMBER // (len(messages.SETTINGS) * len(messages.MOMENTS))
    found = rounds.run(messages.Key(kind, moment, 1), number)
    assert found.total() == number
    assert found["ProtocolError"] > found[""]


def test_every_act_of_every_role_is_among_them(rounds: messages.Rounds) -> None:
    for kind in nonempty(messages.SETTINGS):
        table = rounds.configs(kind)[0].access
        due = {(str(callee), act) for act, pairs in table.items() for _, callee in pairs}
        roles = {config.party: str(config.role) for config in rounds.configs(kind)}
        found = {(roles[r.callee], type(r.act)) for r in rounds.recorded(kind)}
        assert found == due - NOT_AMONG.get(kind, set())


def test_a_round_follows_from_its_key(rounds: messages.Rounds) -> None:
    key = messages.Key("coordinator aggregates", "training", 3)
    assert rounds.run(key, 50) == rounds.run(key, 50) != rounds.run(key._replace(seed=4), 50)


def test_most_mutations_leave_a_message_and_change_it(rounds: messages.Rounds) -> None:
    rng, found = Random(1), Counter[str]()
    step = next(
        r.act for r in rounds.recorded("coordinator aggregates") if isinstance(r.act, Step) and r.act.received
    )
    right = RPCS[Step].encode(step)
    for _ in range(300):
        data = mutated(rng, right, messages.WORDS)
        try:
            same = RPCS[Step].request.FromString(data) == right
            found["equal" if same else "other"] += 1
        except DecodeError:
            found["malformed"] += 1
    assert found["other"] > found["malformed"] > 0
    assert 0 < found["equal"] < 60


def test_a_message_that_logs_and_is_refused_is_a_failure(
    rounds: messages.Rounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown = iter(range(1_000_000))
    monkeypatch.setattr(messages.Target, "sizes", lambda self: next(grown))
    with pytest.raises(messages.Failed, match=r"^message \d+, [A-Z][a-z]+: refused and logged: "):
        rounds.run(messages.Key("coordinator aggregates", "before", 1), 50)


@pytest.mark.facts
def test_two_kills() -> None:
    found = killing.soak(60, number=2)
    assert (found["ran"], found["failures"]) == (2, [])


@pytest.mark.facts
def test_a_party_that_is_killed_and_returns() -> None:
    found = returning.soak(60, number=1)
    assert (found["ran"], found["failures"]) == (1, [])


def test_a_few_messages() -> None:
    found = messages.soak(60, number=30)
    assert (found["ran"], found["failures"]) == (30, [])
    assert found["answered"] + sum(found["refused"].values()) == 30


@pytest.mark.facts
def test_a_service_of_seconds() -> None:
    found = memory.soak(3.0)
    assert found["ran"] > 0
    assert {party for party in found if isinstance(found[party], dict)} == {
        "passive",
        "active",
        "coordinator",
    }


def test_memory_that_grows_is_a_failure() -> None:
    def sample(at: float, mib: float, threads: int = 9) -> memory.Sample:
        found = memory.Sample({})
        found.at, found["active"] = at, (int(mib * 2**20), threads, 30)
        return found

    def failures(*samples: memory.Sample) -> int:
        return len(memory.judged(samples)["failures"])

    noise = np.random.default_rng(1).normal(0, 0.05, 600)
    assert memory.slope(range(600), (noise * 2**20).tolist()) == pytest.approx(0, abs=1)
    hour = [sample(60 * at, 80 + at / 60 * 7 + noise[at]) for at in range(60)]
    assert failures(*hour) == 0
    assert failures(*(sample(60 * at, 80 + at / 60 * 9) for at in range(60))) == 1
    assert failures(*hour[:-1], sample(3600, 87, threads=10)) == 1


def test_its_table_and_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failure = {"cell": "kills:passive:Step.asked:7", "error": "two draws"}
    figures = {"planned": 9, "ran": 5, "seconds": 3, "failures": [], "slowest_ms": 0.5}
    parts = {
        "kills": (lambda seconds: figures | {"failures": [failure]}, 0.4),
        "messages": (lambda seconds: figures, 0.4),
        "memory": (lambda seconds: figures | {"ran": seconds}, 0.2),
    }
    monkeypatch.setattr(soak, "PARTS", parts)
    monkeypatch.setattr(sys, "argv", ["soak", "--minutes", "10", "--out", str(tmp_path / "a/soak.json")])
    assert soak.main() == 1
    text = capsys.readouterr().out
    assert "| memory | 9 | 120.0 | 3 | 0 | slowest_ms 0.5 |" in text
    assert text.endswith(
        "FAILED two draws\n  again: make soak SOAK=\"--repeat 'kills:passive:Step.asked:7'\"\n"
    )
    assert json.loads((tmp_path / "a/soak.json").read_text())["kills"]["failures"] == [failure]
