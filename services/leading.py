"""A leader's run, over the deaths of its parties."""

from __future__ import annotations

from collections.abc import Callable

from vflens.coordinator.leader import Leader
from vflens.errors import UnavailableError


def run(
    leader: Leader,
    check_alive: Callable[[], None],
    say: Callable[[str], None],
    *,
    resumed: bool = False,
) -> None:
    """Run up to the predictions, then wait until the data parties have predicted and attacked.

    Where a party dies and ``limits.rejoin_seconds`` allow it, wait for it and go on.
    """
    before = (leader.recovery.learned, leader.rejoin()) if resumed else None
    while True:
        try:
            leader.lead(check_alive)
            while not leader.finished.wait(1.0):
                check_alive()
            return
        except UnavailableError as error:
            if not (seconds := leader.config.limits.rejoin_seconds):
                raise
            leader.log.warning("waits", reason=str(error))
            say(f"{error}; waiting {seconds:g} s for it to be resumed")
            now = (leader.recovery.learned, leader.rejoin())
            if now == before:  # nobody was restarted, and nothing moved on
                raise
            before = now
