"""The messages that a party received; the receiver records each on arrival, once per exchange."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vflens.errors import StorageError
from vflens.failpoints import fail_point
from vflens.storage.chain import Head
from vflens.storage.durable import sync, sync_name
from vflens.storage.journal import Journal, Reader
from vflens.storage.json_file import in_words, json_object
from vflens.storage.regular import make_folder, opened_to_write, read_text
from vflens.types import Exchange, Phase, Point, Released

_TRAIN = Phase.TRAIN  # an enumeration's attribute takes a fifth of a microsecond


class Transcript(Reader):
    """The record of the receiver ``party`` in ``folder``, read from disk as a :class:`Reader` reads a log.

    A sampled transcript keeps the training messages of every ``every``-th epoch only. ``received`` and
    ``nbytes`` count all arrivals, also before a restart. Training exchanges arrive in increasing order, so
    the last step per (sender, point) detects a replay; prediction and disclosure exchanges are listed one by
    one.
    """

    def __init__(self, folder: Path, every: int = 1, *, party: str = "") -> None:
        super().__init__(folder)
        self._every = every
        self._left_out = _LeftOut(folder / "left_out.json") if every > 1 else None
        self._journal = Journal(folder, chained=True, party=party)
        self._latest: dict[tuple[str, Point], int] = {}
        self._seen: set[tuple[str, Point, Exchange]] = set()
        self.received = 0
        self.nbytes = 0
        for released in self:
            self._is_new(released)
            self._count(1, released.layout.nbytes)
        for key, (messages, nbytes, step) in self._left_out.items() if self._left_out else ():
            self._latest[key] = max(step, self._latest.get(key, -1))
            self._count(messages, nbytes)

    @property
    def complete(self) -> bool:
        """Whether it keeps every message."""
        return self._left_out is None

    def record(self, *arrived: Released) -> bool:
        """Append those of ``arrived`` that are new, in one piece, unless sampling drops them; return whether
        any is.
        """
        new = [released for released in arrived if self._is_new(released)]
        if not new:
            return False
        kept = new if self._left_out is None else [released for released in new if self._is_kept(released)]
        if kept:
            self._journal.append(*kept)
        if self._left_out is not None and len(kept) < len(new):
            self._left_out.add([released for released in new if not self._is_kept(released)])
        for released in new:
            self._count(1, released.layout.nbytes)
        return True

    @property
    def head(self) -> Head:
        """See :meth:`vflens.storage.journal.Journal.head`; messages that sampling left out have no link."""
        return self._journal.head

    def link(self) -> None:
        """See :meth:`vflens.storage.journal.Journal.link`."""
        self._journal.link()

    def check(self) -> None:
        """See :meth:`vflens.storage.journal.Journal.check`."""
        self._journal.check()

    def close(self) -> None:
        """Close the log."""
        self._journal.close()
        if self._left_out is not None:
            self._left_out.close()

    def _is_kept(self, released: Released) -> bool:
        exchange = released.exchange
        return exchange.phase is not Phase.TRAIN or (exchange.round + 1) % self._every == 0

    def _count(self, messages: int, nbytes: int) -> None:
        self.received += messages
        self.nbytes += nbytes

    def _is_new(self, released: Released) -> bool:
        exchange, key = released.exchange, (released.sender, released.point)
        if exchange.phase is _TRAIN:
            if self._latest.get(key, -1) >= exchange.step:
                return False
            self._latest[key] = exchange.step
            return True
        if (*key, exchange) in self._seen:
            return False
        self._seen.add((*key, exchange))
        return True


class _LeftOut:
    """Messages, bytes and last step of each sender and point that sampling dropped, in ``file``.

    It is written in place, in one piece: no number ever gets shorter, so no old text stays at its end.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            make_folder(file.parent)
            self._of = _numbers(file) if file.exists() else {}
            self._out = opened_to_write(file)
            sync_name(file)
        except (OSError, ValueError) as error:
            raise self._refusal(error) from error

    def items(self) -> Iterator[tuple[tuple[str, Point], list[int]]]:
        """(sender, point) and its messages, bytes and last step."""
        return _by_kind(self._of)

    def add(self, dropped: Sequence[Released]) -> None:
        """Count what was ``dropped``."""
        for released in dropped:
            key = f"{released.point} {released.sender}"
            messages, nbytes, _ = self._of.get(key, (0, 0, -1))
            self._of[key] = [messages + 1, nbytes + released.layout.nbytes, released.exchange.step]
        try:
            fail_point("left_out.json", "begun")
            os.pwrite(self._out.fileno(), json.dumps(self._of).encode(), 0)
            sync(self._out.fileno(), self._file)
            fail_point("left_out.json", "written")
        except OSError as error:
            raise self._refusal(error) from error

    def close(self) -> None:
        self._out.close()

    def _refusal(self, error: Exception) -> StorageError:
        return StorageError(
            f"{self._file} cannot be read or written ({in_words(error)}): free space or choose another `out`"
        )


def left_out(file: Path) -> Iterator[tuple[tuple[str, Point], list[int]]]:
    """(sender, point) and its messages, bytes and last step, of what sampling dropped.

    Nothing without ``file``.

    Raises:
        StorageError: it cannot be read, or no transcript wrote it.
    """
    try:
        return _by_kind(_numbers(file)) if file.exists() else iter(())
    except (OSError, ValueError) as error:
        raise StorageError(
            f"{file} cannot be read as counts of messages ({in_words(error)}): copy it anew from its party"
        ) from error


def _numbers(file: Path) -> dict[str, list[int]]:
    return dict(map(_entry, json_object(read_text(file) or "{}").items()))


def _by_kind(numbers: Mapping[str, list[int]]) -> Iterator[tuple[tuple[str, Point], list[int]]]:
    for key, counted in numbers.items():
        point, sender = key.split(" ", 1)
        yield (sender, Point(point)), counted


def _entry(found: tuple[str, Any]) -> tuple[str, list[int]]:
    """A key and its numbers, written by :meth:`_LeftOut.add`.

    Raises:
        ValueError: that method does not write this.
    """
    key, counted = found
    point, between, _ = key.partition(" ")
    if not between or not isinstance(counted, list) or [type(n) for n in counted] != [int] * 3:
        raise ValueError(f"{key!r} is no point and sender with three whole numbers")
    Point(point)
    return key, counted
