"""The recovery log: training messages since the last checkpoint, never sampled.

A party's state is its last checkpoint plus these messages learned again: that is all a restart needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from vfl.arrays import load_arrays, save_arrays
from vfl.errors import StateError
from vfl.journal import Journal
from vfl.types import Array, Exchange, Released


class RecoveryLog:
    """Checkpoint and messages in ``folder``; ``state`` gives a party's state as named arrays.

    Args:
        folder: ``checkpoint.npz`` and the log.
        every: steps between checkpoints.
    """

    def __init__(self, folder: Path, every: int) -> None:
        self._journal = Journal(folder)
        self._file = folder / "checkpoint.npz"
        self._every = every
        self._checkpointed = -1
        self.learned = -1  # the last training step learned from, set by the party

    def is_due(self, exchange: Exchange) -> bool:
        """Whether ``exchange`` is the next to learn from; False if it was learned from before.

        Raises:
            StateError: steps before it are missing.
        """
        if exchange.step > self.learned + 1:
            raise StateError(
                f"step {exchange.step} came before step {self.learned + 1}: send the missing steps first"
            )
        return exchange.step == self.learned + 1

    def remember(self, released: Released, state: Callable[[], Mapping[str, Array]]) -> None:
        """Log ``released``, the last message learned from, and checkpoint when it is time."""
        self._journal.append(released)
        if self.learned - self._checkpointed >= self._every:
            self.checkpoint(state())

    def checkpoint(self, state: Mapping[str, Array]) -> None:
        """Write ``state``, then begin the log anew.

        Raises:
            StorageError: it cannot be written; the last checkpoint and the log are kept.
        """
        save_arrays(self._file, {"learned": np.array(self.learned), **state})
        self._checkpointed = self.learned
        self._journal.restart()

    def saved(self) -> dict[str, Array]:
        """The last checkpoint's state, empty if there is none."""
        if not self._file.exists():
            return {}
        state = load_arrays(self._file)
        self.learned = self._checkpointed = int(state.pop("learned"))
        return state

    def missed(self) -> Iterator[Released]:
        """The logged messages after the checkpoint, each to be learned from again.

        They are copies: the next checkpoint cuts the log, and a view of what was cut ends the process.
        """
        for logged in self._journal:
            if logged.exchange.step > self.learned:
                tensors = {name: array.copy() for name, array in (logged.tensors or {}).items()}
                released = replace(logged, rows=logged.rows.copy(), tensors=tensors)
                yield released
                self.learned = released.exchange.step

    def check(self) -> None:
        """See :meth:`vfl.journal.Journal.check`."""
        self._journal.check()

    def close(self) -> None:
        """Close the log."""
        self._journal.close()
