"""Training and disclosures: the digest of each release against what others received."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from vflens.errors import StorageError
from vflens.experiments.results.folders import PartyRun
from vflens.experiments.results.record import RecordedRun
from vflens.experiments.verify_log.finding import Found
from vflens.experiments.verify_log.rules import RULES
from vflens.storage import release_digests
from vflens.storage.journal import records
from vflens.storage.json_file import in_words
from vflens.storage.release_digests import digests
from vflens.types import Phase, Point
from vflens.words import counted


class ReleaseKey(NamedTuple):
    """A release, before predictions: a party makes it once."""

    phase: Phase
    point: Point
    round: int
    step: int

    def __str__(self) -> str:
        return f"{self.point} of {self.phase} step {self.step}"


@dataclass(frozen=True)
class Received:
    """A record in the transcript of ``party``: its line, and the digests that its sender may name."""

    party: PartyRun
    line: int
    digests: tuple[bytes, ...]


def compare_digests(run: RecordedRun, faults: Found) -> dict[tuple[str, str], int]:
    """Compare what the parties of ``run`` released before predictions with what the others received.

    Returns:
        (sender, receiver) → number of records that were compared with the sender's own digest.
    """
    arrived = _arrived(run)
    compared: dict[tuple[str, str], int] = {}
    for sender, received in arrived.items():
        party = next((p for p in run.parties if p.name == sender), None)
        released = None if party is None else _released(party, faults)
        if party is not None and released is not None:
            for name, count in _compare(party, released, received, faults).items():
                compared[sender, name] = count
            _check_arrival(run, party, released, received, faults)
        else:
            _compare_receivers(sender, received, faults)
    return compared


Arrived = Mapping[ReleaseKey, Sequence[Received]]


def _arrived(run: RecordedRun) -> dict[str, dict[ReleaseKey, list[Received]]]:
    """Sender → release → its records in all transcripts, but for parts of a gradient."""
    arrived: dict[str, dict[ReleaseKey, list[Received]]] = {p.name: {} for p in run.parties}
    for party in run.parties:
        for line, sender, key, value in _records(party):
            if not (key.point is Point.GRADIENT and party.takes_parts):
                arrived.setdefault(sender, {}).setdefault(key, []).append(Received(party, line, value))
    return arrived


def _records(party: PartyRun) -> Iterator[tuple[int, str, ReleaseKey, tuple[bytes, ...]]]:
    """Line, sender, release and digests of the records before predictions; up to a damaged one."""
    with suppress(StorageError):  # the check of the chain reports it
        for line, record in enumerate(records(party.folder / "transcript"), 1):
            released, exchange = record.released, record.released.exchange
            if exchange.phase is not Phase.PREDICT:
                key = ReleaseKey(exchange.phase, released.point, exchange.round, exchange.step)
                yield line, released.sender, key, tuple(released.digests())


def _released(party: PartyRun, faults: Found) -> dict[ReleaseKey, bytes] | None:
    """What ``party`` released, None without digests; a release that was drawn twice is found."""
    folder = party.folder / "released"
    if not (folder / release_digests.FILE).exists():
        return None
    released: dict[ReleaseKey, bytes] = {}
    try:
        for number, made in enumerate(digests(folder), 1):
            key = ReleaseKey(*made[:4])
            if released.setdefault(key, made.digest) != made.digest:
                problem = f"record {number}, {key}, was released before with other values"
                faults.differs(party.name, f"released/{release_digests.FILE}", problem)
    except ValueError as error:
        faults.damaged(
            party.name, f"released/{release_digests.FILE}", f"it cannot be read ({in_words(error)})"
        )
        return None
    return released


def _compare(
    sender: PartyRun, released: Mapping[ReleaseKey, bytes], received: Arrived, faults: Found
) -> dict[str, int]:
    """Find records that ``sender`` did not release so; the number of compared ones by receiver."""
    compared: dict[str, int] = {}
    for key, taken in received.items():
        for record in taken:
            compared[record.party.name] = compared.get(record.party.name, 0) + 1
            if key not in released:
                problem = f"{key} from {sender.name!r} has no counterpart in what {sender.name!r} released"
            elif released[key] not in record.digests:
                problem = f"{key} has other bytes than {sender.name!r} released"
            else:
                continue
            faults.differs(record.party.name, "transcript/index.jsonl", problem, record.line)
    return compared


def _compare_receivers(sender: str, received: Arrived, faults: Found) -> None:
    """Without the sender's digests: all receivers of a release must have the same bytes."""
    for key, taken in received.items():
        first = taken[0]
        for record in taken[1:]:
            if record.digests != first.digests:
                problem = (
                    f"{key} from {sender!r} has other bytes than at {first.party.name!r}, line {first.line}"
                )
                faults.differs(record.party.name, "transcript/index.jsonl", problem, record.line)


def _check_arrival(
    run: RecordedRun, sender: PartyRun, released: Mapping[ReleaseKey, bytes], received: Arrived, faults: Found
) -> None:
    """Find releases that a receiver lacks; where a run did not end in order, the last were on their way."""
    for receiver in (p for p in run.parties if p.has_transcript):
        lacking = [
            key
            for key in released
            if _is_due(run, sender, receiver, key)
            and receiver not in (r.party for r in received.get(key, ()))
        ]
        if not lacking:
            continue
        who = repr(sender.name)
        due = counted(len(lacking), f"release of {who} is", many=f"releases of {who} are")
        problem = f"{due} missing, the first is {lacking[0]}"
        if {sender.status.state, receiver.status.state} == {"finished"}:
            faults.differs(receiver.name, "transcript/index.jsonl", problem)
        else:
            faults.notes.append(f"{receiver.name}: {problem}: the run did not end in order")


def _is_due(run: RecordedRun, sender: PartyRun, receiver: PartyRun, key: ReleaseKey) -> bool:
    """Whether ``receiver`` records this release of ``sender``. A disclosure goes to whom it is granted: its
    absence anywhere shows nothing.
    """
    every = receiver.settings.transcript.get("every", 1)
    if key.phase is not Phase.TRAIN or (key.round + 1) % every or sender is receiver:
        return False
    return RULES[run.setting].recorded(sender, receiver, key.point)
