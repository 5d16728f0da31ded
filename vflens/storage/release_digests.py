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
from vflens.types import Exchange, Phase, Point, Released

FILE = "digests.bin"
_RECORD = struct.Struct(
    f"<BBqq{LINK_BYTES}s"
)  # places of phase and point in their lists, round, step, digest
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
        exchange = released.exchange
        places = _PLACES[exchange.phase, released.point]
        record = _RECORD.pack(*places, exchange.round, exchange.step, released.digest)
        if record in self._earlier or record in self._written(exchange):
            return
        masked = released.point in _MASKED
        bound = (self.once and exchange.phase is Phase.TRAIN) or masked
        if bound and record[:-LINK_BYTES] in self._exchanges:
            raise StateError(
                f"{released.point} of round {exchange.round} left with other numbers before a restart: its "
                "mask or noise serves once, repeat the round as it was or begin a new run"
            )
        try:
            append(self._out, record, self._folder, FILE)
        except OSError as error:
            raise self._refusal(error) from error
        self._written(exchange).add(record)
        if masked:
            self._exchanges.add(record[:-LINK_BYTES])

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

    def _written(self, exchange: Exchange) -> set[bytes]:
        """What was written in the round of ``exchange``."""
        self._newest.pop((exchange.phase, exchange.round - 2), None)
        return self._newest.setdefault((exchange.phase, exchange.round), set())

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
