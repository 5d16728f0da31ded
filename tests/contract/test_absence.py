"""A client that dies is waited for, or left out of the rounds until it is back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accidents import Around, Interrupted, rebuild
from horizontal import clients_of, deal, federation, server_of, table
from laboratory import close, transcripts
from oneprocess import LocalFederation

from vflens.config import load_party
from vflens.coordinator.horizontal.participation import Absences
from vflens.errors import ConfigError, StorageError, UnavailableError
from vflens.experiments.run.horizontal.experiment import HorizontalExperiment
from vflens.protocol.acts import Act, Begin, Stop
from vflens.services.folder import begin
from vflens.services.leading import run
from vflens.storage.metrics import Name
from vflens.types import Point, Released

TABLES = {name: table(rows, seed) for seed, (name, rows) in enumerate({"a": 30, "b": 17, "c": 23}.items())}
ROUNDS = 6
LEAVE: dict[str, Any] = {
    "training": {"optimizer": "sgd", "learning_rate": 0.5, "batch_size": 8},
    "horizontal": {"rounds": ROUNDS, "absent": "leave_out"},
    "limits": {"checkpoint_steps": 2, "rejoin_seconds": 0.01},
}


class Away(Around):
    """A client that cannot be reached while ``away(learned)``, where the server has learned round so far."""

    def __init__(self, local: LocalFederation, name: str, away: Callable[[int], bool]) -> None:
        super().__init__(local.leader.links[name])
        self._local, self._away = local, away
        self.failure = ""

    def submit(self, act: Act[Any]) -> Any:
        if isinstance(act, Stop):
            self.failure = act.failure
        elif self._away(server_of(self._local).recovery.learned):
            raise UnavailableError(f"party {self.name!r} is away")
        return super().submit(act)


def led(local: LocalFederation) -> None:
    run(local.leader, lambda: None, lambda _: None)


class Completing(Around):
    """A client that does all its work once it is asked to begin, as its process does."""

    def __init__(self, local: LocalFederation, name: str) -> None:
        super().__init__(local.leader.links[name])
        self._local = local

    def submit(self, act: Act[Any]) -> Any:
        reply = super().submit(act)
        if isinstance(act, Begin):
            clients_of(self._local)[self.name].complete()
        return reply


def prepared(home: Path, **changes: Any) -> LocalFederation:
    """A federation that is ready to train."""
    local = federation(deal(home, TABLES, **{**LEAVE, **changes}))
    server_of(local).prepare()
    for name in TABLES:
        local.leader.links[name] = Completing(local, name)
    return local


def senders(local: LocalFederation) -> list[str]:
    """Who sent an update in each round, as one word."""
    found = [""] * ROUNDS
    for released in server_of(local).transcript.select(Point.UPDATE):
        found[released.exchange.round] += released.sender
    return found


def away(local: LocalFederation, name: str, when: Callable[[int], bool]) -> Away:
    link = Away(local, name, when)
    local.leader.links[name] = link
    return link


def test_a_client_that_stays_away_is_left_out_of_mean_and_end(tmp_path: Path) -> None:
    local = prepared(tmp_path)
    server = server_of(local)
    expected = {name: value.copy() for name, value in server.parameters.items()}
    link = away(local, "b", lambda learned: learned >= 1)
    led(local)
    assert server.finished.is_set()
    assert senders(local) == ["abc", "abc", *["ac"] * (ROUNDS - 2)]
    assert server.left_out == {"b"}
    assert server.outcome.endswith("at the end without b; the folder of each client has its accuracy")
    rows = {name: np.count_nonzero(t.split == 0) for name, t in TABLES.items()}
    updates = list(server.transcript.select(Point.UPDATE))
    for number in range(ROUNDS):
        sent = [r for r in updates if r.exchange.round == number]
        whole = sum(rows[r.sender] for r in sent)
        for name, value in expected.items():
            expected[name] = value + sum(rows[r.sender] * r.tensor(name) for r in sent) / whole
    for name, value in server.parameters.items():
        np.testing.assert_allclose(value, expected[name], rtol=0, atol=1e-12)
    server.stop()
    assert link.failure == "this party did not come back in time and was left out"
    assert not clients_of(local)["a"].failure
    close(local)


def test_a_client_that_is_back_by_the_end_has_the_last_parameters(tmp_path: Path) -> None:
    local = prepared(tmp_path)
    server = server_of(local)
    away(local, "b", lambda learned: 1 <= learned < ROUNDS - 1)
    led(local)
    assert senders(local) == ["abc", "abc", *["ac"] * (ROUNDS - 2)]
    assert not server.left_out
    held = clients_of(local)["b"].run.model.parameters()
    assert all(np.array_equal(value, held[name]) for name, value in server.parameters.items())
    assert server.finished.is_set()
    assert clients_of(local)["b"].metrics.last(Name.ACCURACY) is not None
    close(local)


@pytest.mark.parametrize("who", ["server", "a"])
@pytest.mark.parametrize("participants", [None, 2])
def test_a_restart_repeats_the_recorded_absences(tmp_path: Path, who: str, participants: int | None) -> None:
    drawn = {} if participants is None else {"participants": participants}
    settings = {**LEAVE, "horizontal": {**LEAVE["horizontal"], **drawn}}
    found = {}
    for interrupted in (False, True):
        home = tmp_path / str(interrupted)
        local = prepared(home, **settings)
        server = server_of(local)
        away(local, "b", lambda learned: 0 <= learned < ROUNDS - 1)
        if interrupted:
            cut = _Cut(local, "c", at=3)
            server.links["c"] = cut
            with pytest.raises(Interrupted):
                led(local)
            server.links["c"] = cut.inner
            rebuild(local, who)
            server_of(local).rejoin()
        led(local)
        close(local)
        values = server_of(local).parameters.values()
        found[interrupted] = b"".join(v.tobytes() for v in values), transcripts(home)
    assert found[True] == found[False]


class _Cut(Around):
    """The run is cut where this client is first asked for a round from number ``at`` on."""

    def __init__(self, local: LocalFederation, name: str, at: int) -> None:
        super().__init__(local.leader.links[name])
        self._at = at

    def submit(self, act: Act[Any]) -> Any:
        if getattr(act, "exchange", None) is not None and act.exchange.step >= self._at:  # type: ignore[attr-defined]
            raise Interrupted
        return super().submit(act)


@pytest.mark.parametrize("gone", ["a", "c"])
def test_a_client_of_a_round_that_is_half_logged_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    """Whether its own update is logged already or not: the round keeps its clients."""
    local = prepared(tmp_path)
    server = server_of(local)
    append = server.recovery.append

    def torn(released: Released) -> None:
        if released.exchange.round == 2 and released.sender == "b":
            raise Interrupted
        append(released)

    monkeypatch.setattr(server.recovery, "append", torn)
    with pytest.raises(Interrupted):
        server.train()
    rebuild(local, "server")
    links = local.leader.links
    there = links[gone]
    away(local, gone, lambda learned: True)
    with pytest.raises(UnavailableError, match=rf"party '{gone}' did not come back within 0.01 s"):
        server_of(local).rejoin()
    links[gone] = there
    server_of(local).rejoin()
    server_of(local).train()
    assert senders(local) == ["abc"] * ROUNDS
    close(local)


def test_by_default_the_run_waits(tmp_path: Path) -> None:
    local = prepared(tmp_path, horizontal={"rounds": ROUNDS})
    away(local, "b", lambda learned: learned >= 1)
    with pytest.raises(UnavailableError, match=r"party 'b' did not come back within 0.01 s"):
        led(local)
    close(local)


def test_a_run_without_any_client_ends(tmp_path: Path) -> None:
    local = prepared(tmp_path)
    for name in TABLES:
        away(local, name, lambda learned: learned >= 1)
    with pytest.raises(UnavailableError, match=r"no client came back within 0.01 s: start them again"):
        led(local)
    close(local)


REFUSED: list[tuple[Any, str]] = [
    ({"limits": {}}, "horizontal.absent = 'leave_out' with limits.rejoin_seconds = 0: set how long"),
    (
        {"horizontal": {"absent": "leave_out", "secure_aggregation": True}},
        "'leave_out' with secure_aggregation: masks cancel in the sum of all clients only",
    ),
]


@pytest.mark.parametrize(("changes", "sentence"), REFUSED)
def test_what_cannot_be_left_out_is_refused(tmp_path: Path, changes: Any, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        load_party(deal(tmp_path, TABLES, **{**LEAVE, **changes})["server"])


def test_a_new_run_forgets_who_was_absent(tmp_path: Path) -> None:
    config = load_party(deal(tmp_path, TABLES, **LEAVE)["server"])
    begin(config)
    Absences(tmp_path / "server/absent.json").change(1, {"b"})
    begin(config)
    assert Absences(tmp_path / "server/absent.json").at(1) == frozenset()


def test_an_experiment_must_wait_before_it_leaves_out_too() -> None:
    made = {"name": "x", "data": {"name": "digits"}, "horizontal": {"absent": "leave_out"}}
    with pytest.raises(ValueError, match=r"limits.rejoin_seconds = 0: set how long the server waits"):
        HorizontalExperiment.model_validate(made)
    HorizontalExperiment.model_validate({**made, "restart": 1})  # parties are then waited for


@pytest.mark.parametrize("text", ["", "[]", '{"x": []}', '{"1": 3}'])
def test_a_damaged_record_of_absences_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "absent.json"
    file.write_text(text)
    with pytest.raises(StorageError, match=r"absent.json does not say which clients were absent"):
        Absences(file)
