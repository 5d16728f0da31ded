"""How far an attack has come, for the person who waits for it."""

from vflens.types import Progress


def silent(stage: str, done: int, total: int) -> None:
    """Ignore progress."""


class Steps:
    """Counts the ``total`` steps of a ``stage``: call it after each."""

    def __init__(self, progress: Progress, stage: str, total: int) -> None:
        self._progress, self._stage, self._total = progress, stage, total
        self._done = 0

    def __call__(self) -> None:
        """One more step is done; those beyond the total are not counted."""
        self._done = min(self._done + 1, self._total)
        self._progress(self._stage, self._done, self._total)
