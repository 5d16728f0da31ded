"""A peer that lives and does nothing: the others end with its name, the phase and the seconds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import horizontal
import pytest
from accidents import Around
from laboratory import THREE, federation, let_go_later
from mutants import KINDS
from nonempty import nonempty
from oneprocess import LocalFederation
from processes import waited
from thinned import thinned

from vflens.clients.data_party import DataParty
from vflens.coordinator.vertical import coordinator
from vflens.errors import StateError, UnavailableError
from vflens.protocol.acts import Act, Begin, Predict, Train
from vflens.protocol.checks import MODEL_VERSION
from vflens.protocol.vertical.alignment import AT_ONCE
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
        monkeypatch.setattr("vflens.member.patience.time.monotonic", lambda: self.now)

    def wait(self, timeout: float | None = None) -> bool:
        self.now += timeout or 0.0
        self.meanwhile()
        return self.is_set()


def wait_for_leader(party: DataParty, clock: Clock, monkeypatch: pytest.MonkeyPatch | None = None) -> None:
    if monkeypatch:
        monkeypatch.setattr(waiting, "lives", lambda *_: True)  # it answers health checks
    leader = party.config.leader
    waited(waiting.until(clock, party, leader, waiting.Reporter(party, lambda _: None, lambda *_: None)))


EPOCHS = 8
NETWORK = {"architecture": "mlp", "width": 2, "hidden": [], "top": [3], "precision": "float64"}
SHARES = {
    "epochs": EPOCHS,
    "batch_size": 40,
    "learning_rate": 0.04,
    "optimizer": "sgd",
    "protection": "shares",
}
NUMBER = KINDS["linear"] | {"attacks": []}
ROUNDS = {"rounds": EPOCHS, "participants": 2}
#: Who leads, and where the active party does, who is asked for nothing meanwhile.
TRAININGS: dict[str, dict[str, Any]] = {
    "the coordinator leads": {},
    "of a number": NUMBER | {"training": {**SHARES, "protection": "none"}},
    "the active party aggregates": {"aggregator": "active", "model": NETWORK, "disclose": [], "attacks": []},
    "on shares": {"training": SHARES},
    "on shares with others": {"training": SHARES, "parties": THREE},
    "on shares, of a number": NUMBER | {"training": SHARES, "parties": {"passive": ["a", "b"]}},
    "rounds of some clients": {"horizontal": ROUNDS},
    "masked rounds": {
        "horizontal": {"rounds": EPOCHS, "participants": 3, "secure_aggregation": True},
        "secure_aggregation": True,
    },
    "splitfed": {
        "horizontal": {"rounds": EPOCHS, "method": "splitfed"},
        "model": {**NETWORK, "precision": "float32"},
    },
}


def led(kind: str) -> list[str]:
    """The data parties; where all clients take part in each round, two show what more would."""
    settings = TRAININGS[kind]
    if "horizontal" in settings:
        return list("abcd" if "participants" in settings["horizontal"] else "ab")
    return [*settings.get("parties", {"passive": ["passive"]})["passive"], "active"]


def made(home: Path, kind: str) -> LocalFederation:
    """A federation of eight epochs or rounds that waits for 2 s, its data parties for 3 s."""
    settings = TRAININGS[kind] | {"limits": {"idle_seconds": 2}}
    if "horizontal" in settings:
        tables = {name: horizontal.table(20, seed) for seed, name in enumerate(led(kind))}
        files = horizontal.deal(home, tables, training={"batch_size": 20, "learning_rate": 0.1}, **settings)
        return let_go_later(horizontal.federation(files))
    return federation(home, **{"training": {"epochs": EPOCHS, "batch_size": 40}} | settings)


class Stepped(threading.Thread):
    """A run that comes as far as its leader's next report each time that it may go on."""

    def __init__(self, local: LocalFederation) -> None:
        super().__init__(daemon=True)
        self.local, self.over, self.reports = local, False, 0
        self._may, self._came = threading.Semaphore(0), threading.Semaphore(0)
        local.leader._progress = self._reported

    def _reported(self, *_: object) -> None:
        self.reports += 1
        self._came.release()
        self._may.acquire()

    def run(self) -> None:
        try:
            self.local.leader.lead()
            self.over = True
        finally:
            self._came.release()

    def go_on(self) -> None:
        self._may.release()
        self._came.acquire()


@pytest.fixture
def stepped() -> Iterator[Callable[[LocalFederation], Stepped]]:
    """Begins runs; those that stand still go on to their end afterwards."""
    begun = list[Stepped]()

    def begin(local: LocalFederation) -> Stepped:
        begun.append(Stepped(local))
        begun[-1].start()
        begun[-1]._came.acquire()
        return begun[-1]

    yield begin
    for leading in begun:
        leading._may.release(1_000)
        leading.join()
        assert leading.over, "it ended otherwise"


def waits(
    local: LocalFederation, run: Stepped, name: str, monkeypatch: pytest.MonkeyPatch, most: int
) -> float:
    """Let the party called ``name`` wait for a run that comes ``most`` reports far, one a second; the seconds
    that it waited.
    """

    def meanwhile() -> None:
        if run.reports < most:
            run.go_on()
        if run.over:
            clock.set()

    clock = Clock(monkeypatch, meanwhile=meanwhile)
    party = local.led[name]
    monkeypatch.setattr(waiting, "lives", lambda *_: repr(local.leader.moved))  # as health checks answer
    wait_for_leader(party, clock)
    return clock.now


@pytest.mark.parametrize("kind", thinned([(kind,) for kind in TRAININGS]))
def test_no_data_party_ends_a_training_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stepped: Callable[[LocalFederation], Stepped], kind: str
) -> None:
    """Whoever leads it, and whatever the party has to do with it: it is four times as long as the limit."""
    for name in nonempty(led(kind)):
        local = made(tmp_path / name, kind)
        assert set(local.led) == set(led(kind))
        assert waits(local, stepped(local), name, monkeypatch, 1_000) >= EPOCHS, name


@pytest.mark.parametrize("kind", thinned([(kind,) for kind in TRAININGS]))
def test_every_data_party_ends_a_training_that_stands_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stepped: Callable[[LocalFederation], Stepped], kind: str
) -> None:
    """In one run: where it has come once the first has waited, the others find it."""
    local = made(tmp_path, kind)
    run = stepped(local)
    for name in nonempty(local.led):
        with pytest.raises(UnavailableError, match=r"lives and asks for nothing in training for 3 s: look"):
            waits(local, run, name, monkeypatch, 3)


def test_a_party_that_takes_steps_waits_on_though_nobody_asks_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An epoch may be longer than the limit of who leads it."""
    local = federation(tmp_path, limits={"idle_seconds": 2})
    local.coordinator.prepare()

    def step() -> None:
        local.active.recovery.mark_learned(int(clock.now) // 2)
        if clock.now >= 30:
            clock.set()

    clock = Clock(monkeypatch, meanwhile=step)
    wait_for_leader(local.active, clock, monkeypatch)
    assert clock.now == 30


@pytest.mark.parametrize("name", ["a", "b", "active"])
def test_a_party_of_few_ids_waits_while_many_are_blinded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stepped: Callable[[LocalFederation], Stepped], name: str
) -> None:
    """Its own are done with the first message of each round of lists."""
    monkeypatch.setitem(AT_ONCE, "psi", 8)  # 90 ids: a dozen messages
    local = federation(
        tmp_path, align={"mode": "psi"}, parties={"passive": ["a", "b"]}, limits={"idle_seconds": 2}
    )
    few = local.passive["a"]
    few.table = replace(few.table, ids=few.table.ids[:8], features=few.table.features[:8])
    assert waits(local, stepped(local), name, monkeypatch, 1_000) >= 36


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
