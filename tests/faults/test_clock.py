"""A wall clock that jumps by a day during a run changes no bit and no deadline."""

from __future__ import annotations

import datetime
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cells import Undisturbed, check
from processes import waited
from world import World, dealt, quick

from vflens.config import Limits, Peer
from vflens.errors import UnavailableError
from vflens.member import patience
from vflens.services.process import wait_for
from vflens.types import Role

DAY = 86_400.0


class Clock:
    """The wall clock, so many seconds ``ahead`` for all Python code but gRPC's: that turns a deadline by this
    clock into one by the monotonic clock at once, in C, where no patch reaches.
    """

    ahead, _real = 0.0, datetime.datetime

    def __call__(self) -> float:
        caller: str = sys._getframe(1).f_globals["__name__"]
        return self._real.now().timestamp() + self.ahead * (not caller.startswith("grpc."))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """In place of this process's."""
    made = Clock()

    class Jumping(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return super().now(tz) + datetime.timedelta(seconds=made.ahead)

    monkeypatch.setattr("time.time", made)
    monkeypatch.setattr("datetime.datetime", Jumping)
    return made


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Undisturbed]:
    home = tmp_path_factory.mktemp("dealt")
    with quick():
        yield Undisturbed.of(dealt(home, "whole transcript"), tmp_path_factory.mktemp("undisturbed"))


@pytest.mark.parametrize("link", ["plain", "grpc"])
@pytest.mark.parametrize("ahead", [DAY, -DAY])
def test_no_bit_of_a_run_depends_on_it(
    undisturbed: Undisturbed, clock: Clock, ahead: float, link: str
) -> None:
    jumps: list[float] = []

    def jump(to: float) -> None:
        clock.ahead = to
        jumps.append(clock())

    def disturb(world: World) -> None:
        world.fail("active", "Step.asked", 3, lambda: jump(ahead))
        world.fail("coordinator", "Predict.asked", 1, lambda: jump(-ahead))

    assert check(undisturbed, link, disturb) == "same bits"
    there, back = jumps
    assert abs(back - there) > DAY


@pytest.mark.parametrize("ahead", [0.0, DAY, -DAY])
def test_a_request_is_repeated_as_long(clock: Clock, monkeypatch: pytest.MonkeyPatch, ahead: float) -> None:
    ticks = iter(range(100))
    monkeypatch.setattr(patience, "time", SimpleNamespace(monotonic=lambda: next(ticks), time=clock))
    tries: list[int] = []

    def away() -> None:
        tries.append(1)
        if len(tries) == 2:
            clock.ahead = ahead
        raise UnavailableError("away")

    ended: Any = SimpleNamespace(wait=lambda seconds: False)
    with pytest.raises(UnavailableError, match="away"):
        patience.patiently(away, 3.5, ended)
    assert len(tries) == 5


@pytest.mark.parametrize("ahead", [DAY, -DAY])
def test_a_party_that_never_comes_is_given_up(tmp_path: Path, clock: Clock, ahead: float) -> None:
    """The clock jumps once it waits: back by a day, it would wait for a day."""
    absent = Peer(name="c", role=Role.COORDINATOR, address=f"unix:{tmp_path}/socket", token="t" * 32)
    config: Any = SimpleNamespace(limits=Limits(wait_seconds=0.1), tls=None)
    text: list[str] = []

    def say(sentence: str) -> None:
        text.append(sentence)
        clock.ahead = ahead

    with pytest.raises(UnavailableError, match="did not come within"):
        waited(wait_for((absent,), config, say, threading.Event()))
    assert text
