"""The recovery log: training messages since the last checkpoint, never sampled.

A party's state is its last checkpoint plus these messages learned again: that is all a restart needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
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

    def is_due(self, exchange: Exchange, ahead: int = 0) -> bool:
        """Whether ``exchange`` comes next after the last learned from; False if it was over before.

        Args:
            exchange: of a training step.
            ahead: how many steps may be taken before those learned from have caught up.

        Raises:
            StateError: steps before it are missing.
        """
        due = self.learned + 1 + ahead
        if exchange.step > due:
            raise StateError(f"step {exchange.step} came before step {due}: send the missing steps first")
        return exchange.step == due or self.learned < 0

    def append(self, released: Released) -> None:
        """Log ``released``, which is learned from now or later."""
        self._journal.append(released)

    def checkpoint_if_due(self, state: Callable[[], Mapping[str, Array]]) -> None:
        """Checkpoint every so many steps, when all that was logged was learned from."""
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

    def missed(self, senders: int) -> Iterator[list[Released]]:
        """The logged messages after the checkpoint, to be learned from again: those of ``senders`` parties a step.

        The last step may lack some of them; it is not learned from, and they come again. Messages are copies:
        after the next checkpoint the log is written over.
        """
        for step, logged in groupby(self._journal, key=lambda released: released.exchange.step):
            messages = {released.sender: released for released in logged}
            if step > self.learned and len(messages) == senders:
                yield list(map(_copied, messages.values()))
                self.learned = step

    def check(self) -> None:
        """See :meth:`vfl.journal.Journal.check`."""
        self._journal.check()

    def close(self) -> None:
        """Close the log."""
        self._journal.close()


def _copied(logged: Released) -> Released:
    tensors = {name: array.copy() for name, array in (logged.tensors or {}).items()}
    return replace(logged, rows=logged.rows.copy(), tensors=tensors)
