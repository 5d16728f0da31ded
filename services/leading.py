"""A leader's run, over the deaths of its parties."""

import time
from collections.abc import Callable

from vflens.coordinator.leader import Leader
from vflens.errors import UnavailableError
from vflens.member.patience import Idle, IdleError

_FIRST_SECONDS, _MOST_SECONDS = 0.1, 2.0  # pauses between losses without progress


def run(
    leader: Leader,
    check_alive: Callable[[], None],
    say: Callable[[str], None],
    *,
    resumed: bool = False,
) -> None:
    """Run up to the predictions, then wait until the data parties have predicted and attacked.

    Where a party dies, wait for it and go on, until nothing has moved on for ``limits.rejoin_seconds``.

    Raises:
        UnavailableError: a party did not come back, or parties did so in vain, or live and do nothing.
    """
    if resumed:
        leader.rejoin()
    losses = _Losses(leader)
    while True:
        try:
            leader.lead(check_alive)
            _await_end(leader, check_alive)
            return
        except IdleError:
            raise
        except UnavailableError as error:
            losses.add(error)
            leader.log.warning("waits", reason=str(error))
            say(f"{error}; waiting {losses.seconds:g} s for it to be resumed")
            leader.rejoin()


def _await_end(leader: Leader, check_alive: Callable[[], None]) -> None:
    """Wait until the data parties have predicted and attacked."""
    idle = Idle(leader.config.limits.idle_seconds)
    while not leader.finished.wait(1.0):
        check_alive()
        idle.check(leader.achieved, f"nothing came of predictions and attacks at {leader.unfinished}")


class _Losses:
    """The losses of parties since the run of ``leader`` last moved on."""

    def __init__(self, leader: Leader) -> None:
        self.seconds = leader.config.limits.rejoin_seconds
        self._leader, self._achieved = leader, leader.achieved
        self._count = 0

    def add(self, error: UnavailableError) -> None:
        """Note a loss, and pause where the one before brought nothing.

        Raises:
            UnavailableError: the run has stood still for ``limits.rejoin_seconds``.
        """
        if not self.seconds:
            raise error
        now, achieved = time.monotonic(), self._leader.achieved
        if achieved != self._achieved or not self._count:
            self._achieved, self._count, self._pause = achieved, 0, _FIRST_SECONDS
            self._first, self._since = error, now
        self._count += 1
        if now - self._since >= self.seconds:
            raise UnavailableError(
                f"nothing moved on for {self.seconds:g} s, in which parties were lost {self._count} times; "
                f"the first time: {self._first}"
            ) from self._first
        if self._count > 1:
            self._leader.stopped.wait(self._pause)
            self._pause = min(2 * self._pause, _MOST_SECONDS)
