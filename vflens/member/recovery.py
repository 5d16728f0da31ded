"""The recovery log: all training messages since the last checkpoint.

A party's state is its last checkpoint plus the effect of these messages: a restart needs no more. The digest
of a checkpoint is in ``state.json`` before the checkpoint is on disk, so that a changed one is noticed.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Self

import numpy as np

from vflens.array import digests, layout_of
from vflens.errors import KnowledgeError, ProtocolError, StateError, StorageError
from vflens.protocol.checks import finite
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.storage.files import load_arrays, save_arrays
from vflens.storage.journal import Journal
from vflens.storage.transcript import Transcript
from vflens.types import Array, Exchange, Phase, Point, Released

NO_CHECKPOINT = ""  # its digest
_NO_ROWS = np.zeros(0, np.int32)


class Recorded:
    """The training messages of kind ``point`` in a complete transcript, which needs no second log."""

    def __init__(self, transcript: Transcript, point: Point) -> None:
        self._transcript, self._point = transcript, point

    def append(self, *released: Released) -> None:
        """Record ``released`` now; its receiver may repeat the call later."""
        self._transcript.record(*released)

    def __iter__(self) -> Iterator[Released]:
        return self._transcript.select(self._point, phases={Phase.TRAIN})

    def restart(self) -> None:
        """Do nothing: a transcript keeps all messages."""

    def check(self) -> None:
        """Do nothing: the transcript's owner does it."""

    def close(self) -> None:
        """Do nothing: the transcript's owner does it."""


class RecoveryLog:
    """Checkpoint and messages in ``folder``; ``state`` gives a party's state as named arrays.

    Args:
        folder: ``checkpoint.npz``, and the log where it is one of its own.
        every: steps between checkpoints.
        log: of the messages, if they are logged elsewhere.
        vouch: writes down the digests of the checkpoints that may be on disk from then on.
        remember: records messages that the log holds elsewhere too.
    """

    def __init__(
        self,
        folder: Path,
        every: int,
        log: Recorded | None = None,
        vouch: Callable[[Collection[str]], None] = lambda digests: None,
        remember: Callable[..., object] = lambda *released: None,
    ) -> None:
        self._log, self._vouch, self.remember = log or Journal(folder), vouch, remember
        self._file = folder / "checkpoint.npz"
        self._every = every
        self._checkpointed = -1
        self._digest = NO_CHECKPOINT  # of the one on disk
        self._learned = -1
        self.incomplete = -1  # the last step of which messages lacked when the log was read

    @classmethod
    def beside(
        cls,
        transcript: Transcript,
        point: Point,
        folder: Path,
        every: int,
        vouch: Callable[[Collection[str]], None],
    ) -> Self:
        """The recovery log of a party that learns from messages of kind ``point``; only a sampled
        ``transcript`` needs a second log.
        """
        if transcript.complete:
            return cls(folder, every, Recorded(transcript, point), vouch)
        return cls(folder, every, None, vouch, transcript.record)

    def is_due(self, exchange: Exchange, ahead: int = 0) -> bool:
        """Whether ``exchange`` is the next one to learn from; False for an earlier one.

        Args:
            exchange: of a training step.
            ahead: number of steps that may be answered before the party learns from them.

        Raises:
            StateError: steps before it are missing.
        """
        due = self.learned + 1 + ahead
        if exchange.step > due:
            raise StateError(f"step {exchange.step} came before step {due}: send the missing steps first")
        return exchange.step == due or self.learned < 0

    @property
    def learned(self) -> int:
        """The last training step learned from, -1 before the first."""
        return self._learned

    def mark_learned(self, step: int) -> None:
        """Note that the party has learned from ``step``, whose messages are logged."""
        self._learned = step

    def append(self, *released: Released) -> None:
        """Log ``released``, to learn from now or later."""
        self._log.append(*released)

    def checkpoint_if_due(self, state: Callable[[], Mapping[str, Array]]) -> None:
        """Checkpoint every so many steps, if the party has learned from all logged messages."""
        if self.learned - self._checkpointed >= self._every:
            self.checkpoint(state())

    def checkpoint(self, state: Mapping[str, Array]) -> None:
        """Write ``state``, then empty the log.

        Raises:
            StorageError: it cannot be written; the last checkpoint and the log are kept.
        """
        arrays = {"learned": np.array(self.learned), **state}
        before, self._digest = self._digest, next(checkpoint_digests(arrays))
        self._vouch((before, self._digest))  # first: a kill leaves one of the two on disk
        save_arrays(self._file, arrays)
        self._vouch((self._digest,))
        self._checkpointed = self.learned
        self._log.restart()

    def saved(self, vouched: Collection[str]) -> dict[str, Array]:
        """The last checkpoint's state, empty if there is none.

        Args:
            vouched: the digests that were written down, one of which must be its own.

        Raises:
            StorageError: it cannot be read, or was changed; ProtocolError: it does not say which step it is
                of.
        """
        found = load_arrays(self._file) if self._file.exists() else None
        own = [NO_CHECKPOINT] if found is None else [*checkpoint_digests(found)]
        self._digest = own[0]
        if not set(own) & set(vouched):
            raise StorageError(
                f"{self._file} is not the one that state.json (checkpoints) names: bring back "
                "the folder as it was, or begin a new run, without --resume"
            )
        if found is None:
            return {}
        check_state(found, {"learned": np.array(0)})
        self._learned = self._checkpointed = int(found.pop("learned"))
        return found

    def missed(self, senders: Callable[[int], int]) -> Iterator[list[Released]]:
        """The logged messages after the checkpoint, to be learned from again: those of ``senders(step)``
        parties in a step.

        An incomplete last step is left out, since its messages come again. Messages are copies: after the
        next checkpoint the log is overwritten.
        """
        for step, logged in groupby(self._log, key=lambda released: released.exchange.step):
            messages = {released.sender: released for released in logged}
            if step > self.learned and len(messages) == senders(step):
                yield list(map(_copied, messages.values()))
                self._learned = step
            elif step > self.learned:
                self.incomplete = step

    def check(self) -> None:
        """See :meth:`vflens.storage.journal.Journal.check`."""
        self._log.check()

    def close(self) -> None:
        """Close the log."""
        self._log.close()


@contextmanager
def as_storage_error(folder: Path) -> Iterator[None]:
    """Inside, the restoring of ``folder``'s run: a refusal names the folder.

    Only our own refusals are caught: any other error is a defect of this program, not of the folder.

    Raises:
        StorageError: a checkpoint or a logged message is incomplete or wrong.
    """
    try:
        yield
    except (ProtocolError, StateError, KnowledgeError) as error:
        raise StorageError(
            f"checkpoint or log of {folder} do not continue its run ({error}): use a "
            "folder that nobody changed"
        ) from error


def check_state(saved: Mapping[str, Array], own: Mapping[str, Array]) -> None:
    """Refuse a ``saved`` state without an array of ``own``, or with one of another kind of number or shape.

    A side of length 0 in ``own`` may have any length in ``saved``.

    Raises:
        ProtocolError: naming the array.
    """
    for name, due in own.items():
        found = saved.get(name)
        if found is None:
            raise ProtocolError(f"the checkpoint lacks {name!r}")
        fits = found.ndim == due.ndim and all(
            d in (0, n) for n, d in zip(found.shape, due.shape, strict=True)
        )
        if found.dtype.kind != due.dtype.kind or not fits:
            raise ProtocolError(
                f"the checkpoint holds {name!r} of shape {found.shape} {found.dtype}: {due.shape} "
                f"{due.dtype} is due"
            )


def check_logged(released: Released, federation: VerticalAgreement, width: int) -> None:
    """Refuse a logged message that this party cannot learn from; it must have ``width`` numbers per row.

    Raises:
        ProtocolError: of other rows or numbers than training has.
    """
    rows = federation.checked_rows(released.rows, Phase.TRAIN)
    finite(released, str(released.point), (len(rows), width), federation.dtype)


def checkpoint_digests(arrays: Mapping[str, Array]) -> Iterator[str]:
    """The digest of a checkpoint, in hexadecimal, and the one that a run of before names instead."""
    contents = (_NO_ROWS, *map(np.ascontiguousarray, arrays.values()))
    for digest in digests(contents, layout_of(contents, tuple(arrays))):
        yield digest.hex()


def _copied(logged: Released) -> Released:
    tensors = {name: array.copy() for name, array in (logged.tensors or {}).items()}
    return replace(logged, rows=logged.rows.copy(), tensors=tensors)
