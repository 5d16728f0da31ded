"""A peer that was started again leaves its earlier process behind: what that one still sends is refused."""

from __future__ import annotations

import threading

from vflens.errors import StateError


class Fence:
    """The newest incarnation (number of restarts) that this process knows of each peer."""

    def __init__(self) -> None:
        self._newest: dict[str, int] = {}
        self._lock = threading.Lock()

    def admit(self, peer: str, incarnation: int) -> None:
        """Take a message of this ``incarnation``; earlier ones have ended then.

        Raises:
            StateError: ``peer`` was started again since.
        """
        newest = self._newest.get(peer, 0)
        if incarnation == newest:  # nearly always: no lock
            return
        with self._lock:
            newest = self._newest[peer] = max(incarnation, self._newest.get(peer, 0))
        if incarnation < newest:
            raise StateError(
                f"party {peer!r} sent this before its restart {newest}, or from a copy of its folder "
                f"(restart {incarnation}): stop its other processes, then start it with its newest folder"
            )
