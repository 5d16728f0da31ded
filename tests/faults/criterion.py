"""What a run may end with, whatever happened to it: the undisturbed run's bits, or an error and a beginning
of its logs; and one draw of noise for every exchange.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
from horizontal import learned
from laboratory import estimates, trained
from oneprocess import LocalFederation

from vflens.errors import StorageError, VflensError
from vflens.protocol.acts import Deliver, Predict, Step, StepReply
from vflens.storage import journal
from vflens.types import Phase, Released

LOGS = ("transcript", "released")
TIMES = ("seconds", "steps_per_second")


class Bits(NamedTuple):
    """All that two equal runs have in common, by party and name."""

    learned: Mapping[str, bytes]
    logs: Mapping[str, bytes]
    estimates: Mapping[str, bytes]
    figures: Mapping[tuple[Any, ...], str]


def bits(local: LocalFederation, home: Path) -> Bits:
    """The outcome of the closed federation ``local`` below ``home``."""
    return left(home)._replace(learned=learned(local) or trained(local))


def left(home: Path) -> Bits:
    """What the folders of a run below ``home`` show: all but the parameters in memory."""
    return Bits({}, logged(home), estimates(home), _figures(home))


def logged(home: Path) -> dict[str, bytes]:
    """Every party's index and payload of its transcript and of what it released.

    The digests of releases are compared as draws.
    """
    files = (f for log in LOGS for f in sorted(home.glob(f"*/{log}/*")) if f.name != "digests.bin")
    return {f"{f.parts[-3]}/{f.parts[-2]}/{f.name}": f.read_bytes() for f in files}


def assert_same(found: Bits, undisturbed: Bits) -> None:
    """Equal in every part."""
    for part, expected in undisturbed._asdict().items():
        given = getattr(found, part)
        differ = [name for name in sorted({*given, *expected}) if given.get(name) != expected.get(name)]
        assert not differ, f"{part} differ: {differ}"


def assert_untouched(logs: Mapping[str, bytes], undisturbed: Mapping[str, bytes]) -> None:
    """The logs begin as those of the undisturbed run; a last record may be torn."""
    for name, data in logs.items():
        if not name.endswith("left_out.json"):  # counts, overwritten in place
            assert undisturbed[name].startswith(data), f"{name} is no beginning of the undisturbed run's"


def assert_numbered(error: VflensError) -> None:
    """An error of a kind of its own, in one sentence."""
    assert type(error) is not VflensError, error
    assert "unexpected" not in str(error)
    assert "\n" not in str(error)


def carried(message: Any) -> Iterator[Released]:
    """The payloads in an act or in its reply."""
    match message:
        case Released():
            yield message
        case Step(received=Released() as released) | StepReply(released=Released() as released):
            yield released
        case Deliver(released=released) | Predict(embedding=released):
            yield released
        case tuple():
            for part in message:
                yield from carried(part)


class Draws(dict[tuple[Any, ...], bytes]):
    """The one payload of each exchange, of each row in predictions."""

    def note(self, payloads: Iterable[Released]) -> None:
        """Take ``payloads``, wherever they were seen: none is another draw."""
        for released in payloads:
            for key, drawn in _parts(released):
                assert self.setdefault(key, drawn) == drawn, f"{key} was drawn twice"

    def note_logs(self, home: Path) -> None:
        """Those in all logs of all parties, of earlier runs too."""
        for folder in sorted({f.parent for f in home.rglob("index.jsonl")}):
            self.note(_whole_records(folder))
        for file in sorted(home.rglob("digests.bin")):
            for (record,) in struct.iter_unpack("50s", file.read_bytes()):
                key, digest = (file.relative_to(home).parts[0], record[:18]), record[18:]
                assert self.setdefault(key, digest) == digest, f"{key} was drawn twice"


def _whole_records(folder: Path) -> Iterator[Released]:
    try:
        yield from journal.read(folder)
    except StorageError:  # a recovery log that was emptied and killed before its first payload
        assert folder.name == "recovery"


def _parts(released: Released) -> Iterator[tuple[tuple[Any, ...], bytes]]:
    exchange, tensors = released.exchange, released.tensors or {}
    who = (released.sender, released.point, exchange.run, exchange.phase, exchange.round)
    if exchange.phase is Phase.PREDICT:  # a row keeps its answer, in whatever request it is asked
        for place, row in enumerate(released.rows.tolist()):
            yield (*who, row), b"".join(t[place].tobytes() for t in tensors.values())
    else:
        drawn = [released.rows.tobytes(), *(name.encode() + t.tobytes() for name, t in tensors.items())]
        yield (*who, exchange.step), blake2b(b"".join(drawn)).digest()


def _figures(home: Path) -> dict[tuple[Any, ...], str]:
    """The last figure of each name and labels, in all its digits, but those of time."""
    found = {}
    for file in sorted(home.glob("*/metrics.parquet")):
        for row in pq.read_table(file).to_pylist():
            figures = row.pop("value"), row.pop("values")
            if not row["metric"].endswith(TIMES):
                found[file.parent.name, *row.values()] = repr(figures)
    return found
