"""A peer that lives and does nothing: the others end with its name, the phase and the seconds."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import horizontal
import pytest
from accidents import Around
from laboratory import federation, let_go_later
from nonempty import nonempty
from oneprocess import LocalFederation

from vflens.clients.data_party import DataParty
from vflens.coordinator.vertical import coordinator
from vflens.errors import StateError, UnavailableError
from vflens.protocol.acts import Act, Begin, Predict, Train
from vflens.protocol.checks import MODEL_VERSION
from vflens.services import waiting
from vflens.services.leading import run
from vflens.types import Array, Exchange, Phase

LIMITS = {"idle_seconds": 0.5, "rejoin_seconds": 60}
REMEDY = "look at its log, or raise limits.idle_seconds"


def vertical(home: Path) -> LocalFederation:
    return federation(home, limits=LIMITS)


def clients(home: Path) -> LocalFederation:
    tables = {name: horizontal.table(20, seed) for seed, name in enumerate("ab")}
    return let_go_later(horizontal.federation(horizontal.deal(home, tables, limits=LIMITS)))


class Clock(threading.Event):
    """An event whose waits take no time and let a second pass."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, meanwhile: Any = lambda: None) -> None:
        super().__init__()
        self.now, self.meanwhile = 0.0, meanwhile
        monkeypatch.setattr("vflens.member.idle.time.monotonic", lambda: self.now)

    def wait(self, timeout: float | None = None) -> bool:
        self.now += timeout or 0.0
        self.meanwhile()
        return self.is_set()


def wait_for_leader(party: DataParty, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "lives", lambda *_: True)  # it answers health checks
    leader = party.config.leader
    waiting.until(clock, party, leader, waiting.Reporter(party, lambda _: None, lambda *_: None))


@pytest.mark.parametrize("made", [vertical, clients])
@pytest.mark.parametrize(
    ("phase", "words"),
    [
        ("new", "before the run is prepared"),
        ("prepared", "in training"),
        ("trained", "in predictions and attacks"),
    ],
)
def test_a_leader_that_asks_for_nothing_ends_its_data_parties(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Any, phase: str, words: str
) -> None:
    local = made(tmp_path)
    if phase == "prepared":
        local.leader.prepare()
    if phase == "trained":
        local.leader.lead()
    for party in nonempty(local.led.values()):
        with pytest.raises(UnavailableError) as idle:
            wait_for_leader(party, Clock(monkeypatch), monkeypatch)
        leader = party.config.leader
        assert str(idle.value) == (
            f"{leader.role} {leader.name!r} lives and asks for nothing {words} for 0.75 s: {REMEDY}"
        )


def test_a_data_party_that_is_asked_now_and_then_waits_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = federation(tmp_path, limits={"idle_seconds": 3})
    local.coordinator.prepare()
    asked = 0

    def ask() -> None:
        nonlocal asked
        asked += 1
        if not asked % 4:
            local.coordinator.show_life()
        if asked > 40:
            clock.set()

    clock = Clock(monkeypatch, meanwhile=ask)
    wait_for_leader(local.passive["passive"], clock, monkeypatch)
    assert asked == 41


@pytest.mark.parametrize(("made", "names"), [(vertical, "'active', 'passive'"), (clients, "'a', 'b'")])
def test_data_parties_that_never_report_their_end_end_their_leader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Any, names: str
) -> None:
    local = made(tmp_path)
    local.leader.finished = Clock(monkeypatch)
    with pytest.raises(UnavailableError) as idle:
        run(local.leader, lambda: None, lambda _: None)
    assert str(idle.value) == f"nothing came of predictions and attacks at {names} for 0.5 s: {REMEDY}"


def test_a_prediction_that_is_repeated_is_no_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new row is: the active party may take its time as long as it goes on."""
    local = federation(tmp_path, limits={"idle_seconds": 3})
    asked = 0

    def ask() -> None:
        nonlocal asked
        own = local.active.predictions._own(*exchange_of(min(asked, 5)))
        asked += 1
        local.active.links["coordinator"].call(Predict(own))

    def exchange_of(number: int) -> tuple[Exchange, Array]:
        rows = local.coordinator.aligned.predict[number : number + 1]
        return Exchange("tiny/run", Phase.PREDICT, MODEL_VERSION, number), rows

    local.coordinator.finished = Clock(monkeypatch, meanwhile=ask)
    with pytest.raises(UnavailableError, match=r"^nothing came of predictions and attacks at .* for 3 s"):
        run(local.coordinator, lambda: None, lambda _: None)
    assert 8 <= asked <= 10


class Dumb(Around):
    """Takes a request to train and never answers it; other acts it answers."""

    def submit(self, act: Act[Any]) -> Any:
        return Future[Any]() if isinstance(act, Train) else super().submit(act)


def test_an_aggregator_that_never_trains_ends_its_coordinator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator, "_LOOK_SECONDS", 0.01)
    network = {"architecture": "mlp", "width": 2, "precision": "float64"}
    local = federation(tmp_path, limits=LIMITS, model=network, aggregator="active", attacks=[], disclose=[])
    local.coordinator.links["active"] = Dumb(local.coordinator.links["active"])
    with pytest.raises(UnavailableError) as idle:
        run(local.coordinator, lambda: None, lambda _: None)
    assert str(idle.value) == f"'active' lives and trained no epoch for 0.5 s: {REMEDY}"


def test_a_coordinator_that_serves_shows_that_it_lives(tmp_path: Path) -> None:
    local = federation(tmp_path)
    before = {name: party.performed for name, party in local.data_parties.items()}

    class Away(Around):
        def submit(self, act: Act[Any]) -> Any:
            raise UnavailableError("it is away")

    links = local.coordinator.links
    links["active"] = Away(links["active"])
    local.coordinator.show_life()
    after = {name: party.performed for name, party in local.data_parties.items()}
    assert (after["active"], after["passive"]) == (before["active"], before["passive"] + 1)
    with pytest.raises(StateError, match="has no run yet"):
        local.coordinator.links["passive"].call(Begin("tiny/run", 1))
    assert local.passive["passive"].performed == after["passive"], "a refused act is no progress"
