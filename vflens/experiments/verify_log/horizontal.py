"""What a horizontal run adds: who records what, and whether each mean of updates is the one that was sent."""

from collections.abc import Mapping
from contextlib import suppress

import numpy as np

from vflens import array
from vflens.errors import ProtocolError, StorageError, VflensError
from vflens.experiments.results.folders import PartyRun
from vflens.experiments.results.record import RecordedRun
from vflens.experiments.verify_log.finding import Found
from vflens.protocol.horizontal.agreement import HorizontalAgreement
from vflens.recorded.horizontal.parameters import averaged, check_update, parameters_of
from vflens.storage import release_digests
from vflens.storage.files import UNREADABLE, read_arrays
from vflens.storage.journal import Messages, records
from vflens.storage.json_file import in_words, json_object
from vflens.storage.regular import read_text
from vflens.storage.release_digests import digests
from vflens.types import Array, Phase, Point, Released, Role

Parameters = Mapping[str, Array]
Updates = Mapping[str, tuple[int, Released]]
_UPDATES = (Point.UPDATE, Point.MASKED_UPDATE)
_NO_ROWS = np.zeros(0, np.int32)


def is_recorded(sender: PartyRun, receiver: PartyRun, point: Point) -> bool:
    """Whether ``receiver`` records a training release of ``point`` of ``sender``. A server that leaves a
    client out has no part of its last round, and a client that was not drawn gets no parameters.
    """
    settings = sender.federation.horizontal
    if settings.get("absent", "wait") != "wait":
        return False
    if receiver.role is Role.SERVER:
        return sender.role is Role.CLIENT
    return point is Point.PARAMETERS and sender.role is Role.SERVER and settings.get("participants") is None


def compare_means(run: RecordedRun, faults: Found) -> None:
    """Compute the parameters of each round of ``run`` again, bit by bit, from those before and the server's
    records of the updates. The first round that does not fit is found, the later ones follow from it.
    """
    server = next((p for p in run.parties if p.role is Role.SERVER and p.has_transcript), None)
    if server is None:
        if run.holds(Role.CLIENT):
            faults.notes.append("no transcript of the server was given: no mean of updates is computed again")
        return
    try:
        facts = json_object(read_text(server.folder / "federation.json"))
        federation = HorizontalAgreement.restored(facts, {})
    except (OSError, ValueError, KeyError, TypeError, VflensError) as error:
        faults.notes.append(
            f"{server.name}: no mean is computed again, its federation.json lacks facts ({in_words(error)})"
        )
        return
    if federation.horizontal.is_split:
        faults.notes.append(
            f"{server.name}: no mean is computed again: the top models of SplitFed are not recorded"
        )
        return
    _compare(run, server, federation, faults)


def _compare(run: RecordedRun, server: PartyRun, federation: HorizontalAgreement, faults: Found) -> None:
    due, updates = _digested(server), _updates(server, faults)
    sent = _sent(run, server, federation, due)
    current: Parameters | None = None
    computed = 0
    for number in range(federation.epochs):
        current = sent.get(number, current)
        if current is None or number not in updates or number + 1 not in due:
            current = None
            continue
        try:
            current = _mean(federation, current, updates[number])
        except VflensError as error:
            line = min(line for line, _ in updates[number].values())
            faults.damaged(
                server.name, "transcript/index.jsonl", f"round {number} has no mean ({error})", line
            )
            return
        computed += 1
        if due[number + 1] not in _digests(current):
            names = ", ".join(sorted(updates[number]))
            faults.differs(
                server.name,
                f"released/{release_digests.FILE}",
                f"the parameters of round {number + 1} are not those of round {number} plus the mean of the "
                f"recorded updates of {names}",
            )
            return
    if computed < federation.epochs:
        rounds = f"{computed} of {federation.epochs} means are computed again"
        faults.notes.append(f"{server.name}: {rounds}: the records of the others are not there")


def _mean(federation: HorizontalAgreement, parameters: Parameters, updates: Updates) -> Parameters:
    """What follows ``parameters``.

    Raises:
        VflensError: an update is not of them, or of no client.
    """
    known = {party.name for party in federation.parties}
    if odd := sorted(set(updates) - known):
        raise ProtocolError(f"{odd[0]!r} is no client")
    for name, (_, update) in updates.items():
        check_update(update, name, federation, parameters)
    return averaged(federation, parameters, [update for _, update in updates.values()])


def _digested(server: PartyRun) -> dict[int, bytes]:
    """Round → the digest of the parameters that the server released in it."""
    made: dict[int, bytes] = {}
    with suppress(OSError, ValueError):  # the comparison of digests reports it
        for release in digests(server.folder / "released"):
            if release.phase is Phase.TRAIN and release.point is Point.PARAMETERS:
                made.setdefault(release.round, release.digest)
    return made


def _updates(server: PartyRun, faults: Found) -> dict[int, dict[str, tuple[int, Released]]]:
    """Round → client → the index line and the update that the server recorded; up to a damaged record."""
    rounds: dict[int, dict[str, tuple[int, Released]]] = {}
    with suppress(StorageError):  # the check of the chain reports it
        for line, record in enumerate(records(server.folder / "transcript"), 1):
            released, exchange = record.released, record.released.exchange
            if exchange.phase is not Phase.TRAIN or released.point not in _UPDATES:
                continue
            of_round = rounds.setdefault(exchange.round, {})
            if of_round.setdefault(released.sender, (line, released))[0] != line:
                problem = f"a second update of {released.sender!r} in round {exchange.round}"
                faults.damaged(server.name, "transcript/index.jsonl", problem, line)
    return rounds


def _sent(
    run: RecordedRun, server: PartyRun, federation: HorizontalAgreement, due: Mapping[int, bytes]
) -> dict[int, Parameters]:
    """Round → the parameters, of those that the server's digests name: a client's record, or the server's own
    of the first round.
    """
    found: dict[int, Parameters] = {}
    with suppress(*UNREADABLE):  # it is no log, and a copy for others lacks it
        first = parameters_of(federation, read_arrays(server.folder / "own.npz"), Messages())(0)
        found = {0: first} if due.get(0) in _digests(first) else {}
    for client in (p for p in run.parties if p.role is Role.CLIENT):
        with suppress(StorageError):
            for record in records(client.folder / "transcript"):
                exchange, released = record.released.exchange, record.released
                tensors = released.tensors if released.point is Point.PARAMETERS else None
                if not tensors or exchange.phase is not Phase.TRAIN:
                    continue
                if due.get(exchange.round) in _digests(tensors, released.rows):
                    found.setdefault(exchange.round, tensors)
    return found


def _digests(parameters: Parameters, rows: Array = _NO_ROWS) -> set[bytes]:
    """The digests of a release of ``parameters``."""
    contents = (rows, *parameters.values())
    return {*array.digests(contents, array.layout_of(contents, tuple(parameters)))}
