"""What a party released in training and disclosures: a digest of each release, not its bytes.

The receivers keep the bytes. With these digests an auditor of both folders sees that they are what was
released. ``digests.bin`` has 50 bytes a release, in their order. A restarted party repeats the releases since
its last checkpoint: they have their digests already, unless the values differ.
"""

import hashlib
import os
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from vflens.errors import StateError, StorageError
from vflens.storage.chain import LINK_BYTES, Head
from vflens.storage.durable import append, sync_name
from vflens.storage.regular import make_folder, opened, opened_to_write, read_bytes
from vflens.types import Phase, Point, Released

FILE = "digests.bin"
_EXCHANGE = struct.Struct("<BBqq")  # places of phase and point in their lists, round, step
_RECORD = struct.Struct(f"{_EXCHANGE.format}{LINK_BYTES}s")  # and the digest
RECORD_BYTES = _RECORD.size
#: What has a mask, which serves once.
_MASKED = {Point.MASKED_UPDATE, Point.SHARES, Point.OPENING}
_PHASES, _POINTS = list(Phase), list(Point)
_PLACES = {
    (phase, point): (_PHASES.index(phase), _POINTS.index(point)) for phase in _PHASES for point in _POINTS
}


class Digested(NamedTuple):
    """A release of phase train or disclose, and the digest of its contents."""

    phase: Phase
    point: Point
    round: int
    step: int
    digest: bytes


class ReleaseDigests:
    """The digests in ``folder``, open for appending; a torn last one is dropped.

    Raises:
        StorageError: they cannot be written; also later.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._file, self.once = folder, folder / FILE, False
        self._newest: dict[tuple[Phase, int], set[bytes]] = {}  # what was written in a phase and round
        self._hash, self._hashed = _hash(), 0  # over so many bytes of the file
        self._reading = threading.Lock()
        try:
            make_folder(folder)
            self._out = opened_to_write(self._file)
            whole = _whole(self._out.readall())
            self._out.truncate(len(whole))
            self._out.seek(0, os.SEEK_END)
            self._earlier = {record for (record,) in struct.iter_unpack(f"{_RECORD.size}s", whole)}
            self._exchanges = {record[:-LINK_BYTES] for record in self._earlier}
            sync_name(self._file)
        except OSError as error:
            raise self._refusal(error) from error

    def add(self, released: Released) -> None:
        """Write the digest of ``released`` before it leaves: a receiver's record then has a counterpart.

        One that an earlier process wrote, or this one in its last two rounds, is not written again: it is
        repeated for a peer that was restarted.

        Raises:
            StateError: an earlier process released other numbers in this exchange, under the same mask, or
                under the same noise where a peer may choose them (``once``): their difference would show.
        """
        _, phase, epoch, step = released.exchange
        exchange = _EXCHANGE.pack(*_PLACES[phase, released.point], epoch, step)
        record, written = exchange + released.digest, self._written(phase, epoch)
        if record in written or (exchange in self._exchanges and self._is_repeated(exchange, released)):
            return
        try:
            append(self._out, record, self._folder, FILE)
        except OSError as error:
            raise self._refusal(error) from error
        written.add(record)
        if released.point in _MASKED:
            self._exchanges.add(exchange)

    def _is_repeated(self, exchange: bytes, released: Released) -> bool:
        """Whether an earlier process made the release of ``exchange`` so; see :meth:`add`."""
        if any(exchange + digest in self._earlier for digest in released.digests()):
            return True
        if released.point in _MASKED or (self.once and released.exchange.phase is Phase.TRAIN):
            raise StateError(
                f"{released.point} of round {released.exchange.round} left with other numbers before a "
                "restart: its mask or noise serves once, repeat the round as it was or begin a new run"
            )
        return False

    @property
    def head(self) -> Head:
        """The number of releases and the hash over them; only what was added since it was asked is read.

        Raises:
            StorageError: they cannot be read.
        """
        with self._reading:
            try:
                with opened(self._file) as file:
                    file.seek(self._hashed)
                    data = _whole(file.read())
            except OSError as error:
                raise self._refusal(error) from error
            self._hash.update(data)
            self._hashed += len(data)
            return Head(self._hashed // RECORD_BYTES, self._hash.digest())

    def _written(self, phase: Phase, epoch: int) -> set[bytes]:
        """What was written in this round."""
        found = self._newest.get((phase, epoch))
        if found is None:
            self._newest.pop((phase, epoch - 2), None)
            found = self._newest[phase, epoch] = set()
        return found

    def close(self) -> None:
        """Close the file."""
        self._out.close()

    def _refusal(self, error: OSError) -> StorageError:
        return StorageError(
            f"{self._file} cannot be written ({error.strerror}): free space or choose another `out`"
        )


def head(folder: Path, records: int | None = None) -> Head:
    """The number of releases in ``folder`` and BLAKE2b-256 over them: of the first ``records``, or of all.

    Raises:
        OSError: they cannot be read.
    """
    data = read_bytes(folder / FILE)
    count = len(data) // _RECORD.size if records is None else records
    found = _hash()
    found.update(data[: count * _RECORD.size])
    return Head(count, found.digest())


def _hash() -> hashlib.blake2b:
    return hashlib.blake2b(digest_size=LINK_BYTES)


def digests(folder: Path, begin: int = 0) -> Iterator[Digested]:
    """The releases in ``folder`` from the one numbered ``begin`` on, in order, without a torn last one.

    Raises:
        OSError: they cannot be read.
        ValueError: no party wrote them.
    """
    with opened(folder / FILE) as file:
        file.seek(begin * RECORD_BYTES)
        data = _whole(file.read())
    for phase, point, epoch, step, found in _RECORD.iter_unpack(data):
        if phase >= len(_PHASES) or point >= len(_POINTS):
            raise ValueError(f"phase {phase} or point {point} does not exist")
        yield Digested(_PHASES[phase], _POINTS[point], epoch, step, found)


def _whole(data: bytes) -> bytes:
    """``data`` without a torn last record."""
    return data[: len(data) - len(data) % _RECORD.size]
