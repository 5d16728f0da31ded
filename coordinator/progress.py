"""How far a run has come, for its operator."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Told how far a stage has come."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """``done`` of ``total`` units of ``stage``."""
