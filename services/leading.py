"""A leader's run, over the deaths of its parties."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vflens.coordinator.leader import Leader
from vflens.errors import UnavailableError

_MOST_RESTARTS = 5  # between which the run may stand still: more are a crash loop


def run(
    leader: Leader,
    check_alive: Callable[[], None],
    say: Callable[[str], None],
    *,
    resumed: bool = False,
) -> None:
    """Run up to the predictions, then wait until the data parties have predicted and attacked.

    Where a party dies and ``limits.rejoin_seconds`` allow it, wait for it and go on.

    Raises:
        UnavailableError: a party did not come back, or parties did so in vain.
    """
    before = None  # also of a resumed leader: a call that was lost on a loaded machine does not end the run
    if resumed:
        leader.rejoin()
    achieved, failures = leader.achieved, list[UnavailableError]()
    while True:
        try:
            leader.lead(check_alive)
            while not leader.finished.wait(1.0):
                check_alive()
            return
        except UnavailableError as error:
            if not (seconds := leader.config.limits.rejoin_seconds):
                raise
            if leader.achieved != achieved:
                achieved, failures = leader.achieved, []
            failures.append(error)
            _check_in_vain(failures)
            leader.log.warning("waits", reason=str(error))
            say(f"{error}; waiting {seconds:g} s for it to be resumed")
            now = (achieved, leader.rejoin())
            if now == before:  # nobody was restarted, and nothing moved on
                raise
            before = now


def _check_in_vain(failures: Sequence[UnavailableError]) -> None:
    """Refuse to wait once more after too many ``failures`` between which the run stood still."""
    if len(failures) > _MOST_RESTARTS:
        raise UnavailableError(
            f"nothing moved on in {_MOST_RESTARTS} restarts of parties; the first time: {failures[0]}"
        ) from failures[0]
