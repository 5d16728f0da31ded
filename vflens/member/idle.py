"""A bound on waiting for a peer that lives and does nothing."""

import time

from vflens.errors import UnavailableError


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
