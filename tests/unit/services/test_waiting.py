"""A party that waits for others."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from laboratory import close, federation
from nonempty import nonempty
from processes import waited

from vflens.config import Limits, Peer
from vflens.errors import ConfigError, UnavailableError
from vflens.services import waiting
from vflens.services.process import wait_for
from vflens.services.waiting import Waits, take_turns
from vflens.types import Role


def test_it_waits_until_it_need_not_any_more(tmp_path: Path) -> None:
    """The coordinator may have come, failed and gone between two looks."""
    absent = Peer(name="c", role=Role.COORDINATOR, address=f"unix:{tmp_path}/socket", token="t" * 32)
    config: Any = SimpleNamespace(limits=Limits(wait_seconds=0.1), tls=None)
    event = threading.Event()
    with pytest.raises(UnavailableError, match="did not come within"):
        waited(wait_for((absent,), config, lambda _: None, event))
    event.set()
    waited(wait_for((absent,), config, lambda _: None, event))


def test_a_data_party_that_was_asked_waits_for_no_coordinator(tmp_path: Path) -> None:
    """A coordinator that died between two looks would else be waited for until ``wait_seconds`` are over."""
    local = federation(tmp_path)
    parties = nonempty(local.data_parties.values())
    assert not any(party.asked.is_set() for party in parties)
    local.coordinator.prepare()
    assert all(party.asked.is_set() for party in parties)
    close(local)


class Turns:
    """Parties that note what they do; each waits for its own event."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.events: dict[str, threading.Event] = {}

    def party(self, name: str, fails: Exception | None = None) -> Waits:
        event = self.events.setdefault(name, threading.Event())
        try:
            yield event, 0.0
            self.done.append(f"{name} begins")
            if fails:
                raise fails
            yield event, 60.0
            self.done.append(f"{name} ends")
        except BaseException as error:
            self.done.append(f"{name}: {type(error).__name__}")
            raise


def test_parties_go_on_in_turn_once_all_have_begun() -> None:
    turns, counted = Turns(), list[int]()

    def begun() -> None:
        counted.append(len(turns.done))
        if len(turns.done) == 2:
            turns.events["b"].set()
            turns.events["a"].set()

    assert take_turns([turns.party("a"), turns.party("b")], begun) == []
    assert counted[0] == 0
    assert turns.done == ["a begins", "b begins", "a ends", "b ends"]


def test_the_others_are_interrupted_a_while_after_one_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_END_SECONDS", 0.2)
    turns, error = Turns(), UnavailableError("gone")
    assert take_turns([turns.party("a"), turns.party("b", error), turns.party("c")], lambda: None) == [error]
    assert turns.done[:4] == ["a begins", "b begins", "b: UnavailableError", "c begins"]
    assert turns.done[4:] == ["c: KeyboardInterrupt", "a: KeyboardInterrupt"]


def test_none_goes_on_once_that_while_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_END_SECONDS", 0.0)
    turns, error = Turns(), UnavailableError("gone")
    assert take_turns([turns.party("a"), turns.party("b", error), turns.party("c")], lambda: None) == [error]
    assert turns.done == [
        "a begins", "b begins", "b: UnavailableError", "c: KeyboardInterrupt", "a: KeyboardInterrupt"
    ]  # fmt: skip


def test_what_hinders_all_from_beginning_is_the_reason_of_each() -> None:
    def begun() -> None:
        raise ConfigError("the address cannot be bound")

    turns = Turns()
    with pytest.raises(ConfigError, match="cannot be bound"):
        take_turns([turns.party("a"), turns.party("b")], begun)
    assert turns.done == ["b: ConfigError", "a: ConfigError"]


def test_a_signal_interrupts_all() -> None:
    def begun() -> None:
        raise KeyboardInterrupt

    turns = Turns()
    with pytest.raises(KeyboardInterrupt):
        take_turns([turns.party("a"), turns.party("b")], begun)
    assert turns.done == ["b: KeyboardInterrupt", "a: KeyboardInterrupt"]
