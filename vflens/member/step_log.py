"""The rows of every training step of one epoch, written before the step's release is drawn.

Two rules about noise need it, also after a restart: a step keeps its rows, so that its noise is
never added to two values; and a row is released once an epoch, so that its noise does not average away.
"""

import os
import struct
from pathlib import Path

import numpy as np

from vflens.errors import ProtocolError, StateError, StorageError
from vflens.failpoints import fail_point
from vflens.storage.durable import sync, sync_name
from vflens.storage.json_file import in_words
from vflens.storage.regular import make_folder, opened_to_write, read_bytes
from vflens.types import Array, Exchange, Phase

_HEAD = struct.Struct("<qqq")  # epoch, step, number of rows (int32), which follow
_END = struct.pack("<q", -1)  # after the last record; bytes after it are from an earlier epoch


class StepLog:
    """The log in ``file``; records of an earlier process stay valid. A torn last record is dropped.

    Each epoch overwrites the file, which keeps the last step of the epoch before: its gradient may still
    come. One step is enough as long as training is at most one step stale
    (``vflens.models.settings.Training.staleness``).

    Raises:
        StorageError: it cannot be read or written, or no party wrote it.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._error: OSError | None = None
        self.epoch = -1  # the last that released rows
        self._steps: dict[int, bytes] = {}  # its steps, and the rows of each
        self._before: dict[int, bytes] = {}  # the last step before them
        # Every row asked for gets the next number; those up to the epoch's first are of earlier epochs.
        self._numbers, self._newest, self._first = np.zeros(0, np.int64), 0, 0
        try:
            make_folder(file.parent)
            self._end = self._read(read_bytes(file) if file.exists() else b"")
            self._out = opened_to_write(file)
            sync_name(file)
        except (OSError, ValueError, ProtocolError) as error:
            raise StorageError(
                f"{file} holds no training steps that can be read ({in_words(error)}): use a folder that "
                "nobody changed"
            ) from error

    def rows(self, step: int) -> bytes | None:
        """The rows of ``step``, int32, None if no longer known."""
        return self._steps.get(step) or self._before.get(step)

    def take(self, exchange: Exchange, rows: Array) -> None:
        """Write that training ``exchange`` releases ``rows`` int32 (n,); repeating it changes nothing.

        A step of an earlier epoch passes: it is computed again, after a restart, from what was logged.

        Raises:
            StateError: the step was taken before with other rows.
            ProtocolError: a row is named twice, or was released before in this epoch.
            StorageError: it cannot be written; nothing may be released.
        """
        known, asked = self.rows(exchange.step), rows.tobytes()
        if known == asked:
            return
        if known is not None:
            raise StateError(
                f"step {exchange.step} was asked for before with other rows: ask for the same rows, or for "
                "the next step"
            )
        if exchange.round >= self.epoch:
            self._mark(exchange, rows)
            self._write(self._begun(exchange.round) + _record(exchange.round, exchange.step, asked))
            self._steps[exchange.step] = asked

    def check(self) -> None:
        """Raise the write error again for callers that did not see it.

        Raises:
            StorageError: a step could not be written.
        """
        if self._error is not None:
            raise StorageError(
                f"{self._file} cannot be written ({self._error.strerror}): free space or choose another `out`"
            ) from self._error

    def close(self) -> None:
        """Close the file."""
        self._out.close()

    def _mark(self, exchange: Exchange, rows: Array) -> None:
        """Mark all or none of ``rows`` as asked for in the exchange's epoch; only their places are read."""
        places = rows.astype(np.intp)
        before = self._numbered(places)
        first = self._newest if exchange.round > self.epoch else self._first
        numbers = np.arange(self._newest + 1, self._newest + 1 + len(rows))
        self._numbers[places] = numbers  # a row named twice keeps one of its two
        kept = self._numbers.take(places)
        if np.count_nonzero(before > first) or kept.tobytes() != numbers.tobytes():
            self._numbers[places] = before
            raise ProtocolError(
                f"step {exchange.step} asks for a row twice, or for one that this epoch asked for before: "
                "ask for each training row once an epoch"
            )
        self._newest, self._first = self._newest + len(rows), first

    def _numbered(self, places: Array) -> Array:
        """The numbers of the rows at ``places``, 0 before they are asked for."""
        try:
            found: Array = self._numbers.take(places)
        except IndexError:  # rows above all that were asked for
            missing = int(places.max()) + 1 - len(self._numbers)
            self._numbers = np.append(self._numbers, np.zeros(max(missing, len(self._numbers)), np.int64))
            found = self._numbers.take(places)
        return found

    def _begun(self, epoch: int) -> bytes:
        """What is written before the next step of ``epoch``: in a new one the last step before it, from the
        beginning.
        """
        if epoch == self.epoch:
            return b""
        self._before = dict(list(self._steps.items())[-1:])
        kept = b"".join(_record(self.epoch, step, rows) for step, rows in self._before.items())
        self._steps, self._end, self.epoch = {}, 0, epoch
        return kept

    def _read(self, data: bytes) -> int:
        """Restore the whole records in ``data``; return their end."""
        end = 0
        while len(data) - end >= _HEAD.size:
            epoch, step, count = _HEAD.unpack_from(data, end)
            if epoch < 0:
                break
            start = end + _HEAD.size
            if start + 4 * count > len(data):
                break
            rows = np.frombuffer(data, "<i4", max(count, 0), start)
            if not len(rows) or rows.min() < 0:
                raise ValueError(f"step {step} names no rows")
            self._mark(Exchange("", Phase.TRAIN, epoch, step), rows)
            self._begun(epoch)
            self._steps[step] = rows.tobytes()
            end = start + rows.nbytes
        return end

    def _write(self, records: bytes) -> None:
        self.check()
        view, place = memoryview(records + _END), self._end
        try:
            fail_point("steps.bin", "begun")
            while view:
                written = os.pwrite(self._out.fileno(), view, place)
                view, place = view[written:], place + written
            sync(self._out.fileno(), self._file)
            fail_point("steps.bin", "written")
        except OSError as error:
            self._error = error
            self.check()
        self._end += len(records)


def _record(epoch: int, step: int, rows: bytes) -> bytes:
    return _HEAD.pack(epoch, step, len(rows) // 4) + rows
