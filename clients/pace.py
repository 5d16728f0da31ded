"""Limits the rows that a party sends per second: a faster caller waits."""

import threading
import time

from vflens.errors import StateError
from vflens.words import counted


class Pace:
    """Limits a party to ``rows_per_second`` (None: no limit), so that its operator has time to react.

    A request is answered at once, and the next one after the seconds that its rows take.
    """

    def __init__(self, party: str, rows_per_second: float | None, patience_seconds: float) -> None:
        self._party, self._rate, self._patience = party, rows_per_second, patience_seconds
        self._free = 0.0  # monotonic seconds, when the next request is answered
        self._lock = threading.Lock()

    def wait(self, rows: int) -> None:
        """Wait until a request for ``rows`` rows may be answered.

        Raises:
            StateError: the caller would not wait so long.
        """
        if self._rate is None or not rows:
            return
        with self._lock:
            now = time.monotonic()
            due = max(now, self._free)
            if due - now > self._patience:
                raise StateError(
                    f"limits.rows_per_second at {self._party!r} is {self._rate:g}: ask again in "
                    f"{counted(due - now, 'second', '.0f')}, for fewer rows at a time"
                )
            self._free = due + rows / self._rate
        time.sleep(due - now)
