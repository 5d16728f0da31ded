"""A party gives away so many rows a second and no more, whoever asks how fast."""

from __future__ import annotations

import time

import pytest

from vflens.clients.pace import Pace
from vflens.errors import StateError


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that passed, [0]: only by sleeping."""
    passed = [100.0]

    def sleep(seconds: float) -> None:
        passed[0] += seconds

    monkeypatch.setattr(time, "monotonic", lambda: passed[0])
    monkeypatch.setattr(time, "sleep", sleep)
    return passed


def test_a_faster_caller_waits(clock: list[float]) -> None:
    pace = Pace("clinic", 50.0, 30.0)
    for _ in range(4):
        pace.wait(100)
    assert clock[0] == pytest.approx(
        100.0 + 3 * 100 / 50
    )  # the first at once, the fourth after three times 2 s


def test_who_asks_slowly_never_waits(clock: list[float]) -> None:
    pace = Pace("clinic", 50.0, 30.0)
    pace.wait(100)
    clock[0] += 10.0
    pace.wait(100)
    assert clock[0] == pytest.approx(110.0)


def test_a_wait_beyond_the_callers_patience_is_refused_and_costs_nothing(clock: list[float]) -> None:
    pace = Pace("clinic", 1.0, 30.0)
    pace.wait(40)
    sentence = "^limits.rows_per_second at 'clinic' is 1: ask again in 40 seconds, for fewer rows at a time$"
    for _ in range(2):
        with pytest.raises(StateError, match=sentence):
            pace.wait(1)
    clock[0] += 40.0
    pace.wait(1)
    assert clock[0] == pytest.approx(140.0)


def test_without_a_limit_nobody_waits(clock: list[float]) -> None:
    pace = Pace("clinic", None, 30.0)
    for _ in range(3):
        pace.wait(10**6)
    assert clock[0] == 100.0
