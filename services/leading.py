"""The coordinator's run, over the deaths of its parties."""

from __future__ import annotations

from collections.abc import Callable

from vflens.coordinator.coordinator import Coordinator
from vflens.errors import UnavailableError


def run(
    coordinator: Coordinator,
    check_alive: Callable[[], None],
    say: Callable[[str], None],
    *,
    resumed: bool = False,
) -> None:
    """Run up to the predictions, then wait until the data parties have predicted and attacked.

    Where a party dies and ``limits.rejoin_seconds`` allow it, wait for it and go on.
    """
    before = (coordinator.recovery.learned, coordinator.rejoin()) if resumed else None
    while True:
        try:
            coordinator.lead(check_alive)
            while not coordinator.finished.wait(1.0):
                check_alive()
            return
        except UnavailableError as error:
            if not (seconds := coordinator.config.limits.rejoin_seconds):
                raise
            coordinator.log.warning("waits", reason=str(error))
            say(f"{error}; waiting {seconds:g} s for it to be resumed")
            now = (coordinator.recovery.learned, coordinator.rejoin())
            if now == before:  # nobody was restarted, and nothing moved on
                raise
            before = now
