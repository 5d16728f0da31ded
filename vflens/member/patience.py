"""Repeat a request while its party is away: all acts may come twice; bound the wait for one that is idle."""

import random
import time
from collections.abc import Callable
from threading import Event
from typing import TypeVar

from vflens.errors import UnavailableError

T = TypeVar("T")

_FIRST_SECONDS, _MOST_SECONDS = 0.1, 2.0  # pauses between two tries


def patiently(work: Callable[[], T], seconds: float, ended: Event) -> T:
    """The result of ``work``, repeated for ``seconds`` from its first failure, unless the run has ``ended``.

    Pauses double up to 2 s, with full jitter: callers that lost the same party do not return together.

    Raises:
        UnavailableError: that of the last try.
    """
    deadline, pause = None, _FIRST_SECONDS
    while True:
        try:
            return work()
        except UnavailableError:
            now = time.monotonic()
            deadline = now + seconds if deadline is None else deadline
            if now >= deadline or ended.wait(min(random.uniform(0, pause), deadline - now)):
                raise
            pause = min(2 * pause, _MOST_SECONDS)


class IdleError(UnavailableError):
    """A peer lives and nothing moves on: to wait for it again does not help."""


class Idle:
    """The time since progress was last seen, ``seconds`` at most."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._since = seconds, time.monotonic()
        self._progress: object = None

    def check(self, progress: object, waiting: str) -> None:
        """Note how far the run is by now; ``progress`` differs from what it was where it has moved on.

        Raises:
            IdleError: it has not for too long, after the words ``waiting``.
        """
        now = time.monotonic()
        if progress != self._progress:
            self._progress, self._since = progress, now
        if now - self._since >= self._seconds:
            raise IdleError(
                f"{waiting} for {self._seconds:g} s: look at its log, or raise limits.idle_seconds"
            )
