"""How a leader's loop over the deaths of its parties ends, and what it takes from their rejoining."""

from __future__ import annotations

import json
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from accidents import Around, rebuild
from laboratory import federation
from oneprocess import LocalFederation

from vflens.coordinator import leader
from vflens.errors import UnavailableError
from vflens.member.stage import Stage
from vflens.protocol.acts import Act, Epoch, Step
from vflens.services.leading import run
from vflens.storage.sent_heads import received_in


class Breaks(Around):
    """A party that breaks off a training step ``times`` times, and claims a restart each time.

    Each time it breaks off ``forward`` steps later than before.
    """

    def __init__(self, inner: Any, local: LocalFederation, *, forward: int, times: int) -> None:
        super().__init__(inner)
        self.local, self.forward, self.times = local, forward, times
        self.at, self.broken, self.restarts = 1, 0, 1

    def submit(self, act: Act[Any]) -> Any:
        if isinstance(act, Step) and act.exchange.step == self.at and self.broken < self.times:
            self.broken += 1
            self.at += self.forward
            self.local.parties[self.name].reached.incarnation += self.restarts
            raise UnavailableError(f"party {self.name!r} broke off, number {self.broken}")
        return super().submit(act)


def led(home: Path, *, forward: int, times: int, seconds: float = 60) -> tuple[LocalFederation, Breaks]:
    """A federation whose coordinator meets :class:`Breaks`."""
    local = federation(home, limits={"rejoin_seconds": seconds})
    links = local.coordinator.links
    links["passive"] = breaks = Breaks(links["passive"], local, forward=forward, times=times)
    return local, breaks


def test_a_party_that_comes_back_for_ever_ends_the_run_with_the_first_cause(tmp_path: Path) -> None:
    local, breaks = led(tmp_path, forward=0, times=50, seconds=2)
    local.coordinator.finished.set()  # where the loop does not end, the run does
    with pytest.raises(
        UnavailableError,
        match=r"^nothing moved on for 2 s, in which parties were lost \d+ times; the first time: "
        r"party 'passive' broke off, number 1$",
    ):
        run(local.coordinator, lambda: None, lambda _: None)
    assert 2 <= breaks.broken < 20, "the pauses between two tries double"


def test_losses_without_progress_end_no_run_while_seconds_are_left(tmp_path: Path) -> None:
    """Not even where the party claims no restart: one that is killed while rows are aligned had no state."""
    local, breaks = led(tmp_path, forward=0, times=4)
    breaks.restarts = 0
    local.coordinator.finished.set()
    run(local.coordinator, lambda: None, lambda _: None)
    assert breaks.broken == 4


class Hiccup(Around):
    """Loses the first training step; its party lives and claims no restart."""

    lost = 0

    def submit(self, act: Act[Any]) -> Any:
        if isinstance(act, Step) and not self.lost:
            self.lost += 1
            raise UnavailableError(f"party {self.name!r} did not answer in time")
        return super().submit(act)


@pytest.mark.parametrize("resumed", [False, True])
def test_one_lost_call_to_a_party_that_lives_ends_no_run(tmp_path: Path, resumed: bool) -> None:
    local = federation(tmp_path, limits={"rejoin_seconds": 5})
    local.coordinator.prepare()
    links = local.coordinator.links
    links["passive"] = hiccup = Hiccup(links["passive"])
    local.coordinator.finished.set()  # the loop ends after training
    run(local.coordinator, lambda: None, lambda _: None, resumed=resumed)
    assert hiccup.lost == 1


def test_a_run_that_moves_on_is_led_over_any_number_of_deaths(tmp_path: Path) -> None:
    local, breaks = led(tmp_path, forward=1, times=9)
    local.coordinator.finished.set()  # the loop ends after training
    run(local.coordinator, lambda: None, lambda _: None)
    assert breaks.broken == 9


def test_where_the_active_party_leads_training_each_epoch_moves_the_run_on(tmp_path: Path) -> None:
    coordinator = federation(
        tmp_path, model={"architecture": "mlp"}, attacks=[], aggregator="active"
    ).coordinator
    coordinator.prepare()
    seen = []
    for number in (0, 1, 2, 1, 2):  # after a restart it asks again
        coordinator.epoch(Epoch("tiny/run", number))
        seen.append(coordinator.achieved)
    assert len(set(seen)) == 3
    assert seen[2] == seen[3] == seen[4]


def test_a_party_that_claims_to_have_finished_has_to_send_its_heads(tmp_path: Path) -> None:
    local = federation(tmp_path)
    local.coordinator.lead()
    local.passive["passive"].complete()
    before = local.coordinator.achieved
    claimed = replace(local.active.standing(), stage=Stage.FINISHED, learned=10**6, released=10**6)
    local.active.rejoin = lambda act: claimed  # type: ignore[method-assign]
    local.coordinator.rejoin()
    assert not local.coordinator.finished.is_set()
    assert local.coordinator.achieved == before
    local.active.complete()
    assert local.coordinator.finished.is_set()
    assert received_in(local.coordinator.folder).keys() == {"active", "passive"}


def test_parties_that_have_finished_report_it_again_to_a_coordinator_that_lost_it(tmp_path: Path) -> None:
    local = federation(tmp_path)
    local.coordinator.lead()
    local.active.complete()
    local.passive["passive"].attack()
    sent = received_in(local.coordinator.folder)
    (local.coordinator.folder / "heads.json").unlink()
    state = local.coordinator.folder / "state.json"
    state.write_text(state.read_text().replace('"finished"', '"open"'))  # a loss of power took the end
    rebuild(local, "coordinator")
    assert not local.coordinator.finished.is_set()
    local.coordinator.rejoin()
    local.coordinator.lead()
    assert local.coordinator.finished.is_set()
    assert received_in(local.coordinator.folder) == sent


class Deaf(Around):
    """A party that takes a request and never answers it, as under SIGSTOP."""

    def submit(self, act: Act[Any]) -> Any:
        return Future[Any]()


class Gone(Around):
    """A party whose socket is gone before the first request."""

    def submit(self, act: Act[Any]) -> Any:
        raise UnavailableError(f"nobody serves {self.name!r}")


@pytest.mark.parametrize(
    ("lost", "reason"), [(Deaf, "it did not answer within 0.01 s"), (Gone, "nobody serves 'a'")]
)
def test_a_party_that_hangs_keeps_the_end_of_the_run_from_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: type[Around], reason: str
) -> None:
    monkeypatch.setattr(leader, "_STOP_SECONDS", 0.01)
    local = federation(tmp_path, parties={"passive": ["a", "b"]})
    links = local.coordinator.links
    links["a"] = lost(links["a"])
    local.coordinator.stop("the run failed")
    assert (local.passive["b"].failure, local.active.failure) == ("the run failed", "the run failed")
    events = (local.coordinator.folder / "events.jsonl").read_text().splitlines()
    facts = [json.loads(line) for line in events if "not told to stop" in line]
    assert [(event["peer"], event["reason"]) for event in facts] == [("a", reason)]
