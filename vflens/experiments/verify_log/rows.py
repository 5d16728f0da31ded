"""Predictions: the rows that a party released against the rows that another received."""

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from vflens.errors import StorageError
from vflens.experiments.results.folders import PartyRun
from vflens.experiments.results.record import RecordedRun
from vflens.experiments.verify_log.finding import Found
from vflens.experiments.verify_log.rules import RULES
from vflens.storage.journal import records
from vflens.types import Array, Phase, Point
from vflens.words import counted


@dataclass(frozen=True, eq=False)
class LoggedRows:
    """Rows int32 (n,), the bytes of each uint8 (n, b), and the index line (n,) that holds it."""

    rows: Array
    content: Array
    lines: Array


def compare_rows(run: RecordedRun, faults: Found) -> dict[tuple[str, str], int]:
    """Compare the prediction rows that parties of ``run`` released with those that the others received.

    Returns:
        (sender, receiver) → number of rows that were compared.
    """
    compared: dict[tuple[str, str], int] = {}
    predicted = RULES[run.setting].predicted
    for sender in run.parties:
        made = _rows(sender, "released", sender.name, faults)
        for receiver in (p for p in run.parties if p.has_transcript):
            due = {key: rows for key, rows in made.items() if predicted(sender, receiver, key[0])}
            arrived = _rows(receiver, "transcript", sender.name, faults) if due else {}
            for key, released in due.items():
                _compare(sender, receiver, released, arrived.get(key, _nothing(released)), faults)
                compared[sender.name, receiver.name] = len(released.rows)
    return compared


def _rows(party: PartyRun, log: str, sender: str, faults: Found) -> dict[tuple[Point, int], LoggedRows]:
    """The rows from ``sender`` in a log of ``party``, by point and version, up to a damaged record."""
    pieces: dict[tuple[Point, int], list[tuple[Array, Array, int]]] = {}
    with suppress(StorageError):  # the check of the chain reports it
        for line, record in enumerate(records(party.folder / log), 1):
            released = record.released
            if released.exchange.phase is not Phase.PREDICT or released.sender != sender:
                continue
            if released.tensors is not None and (problem := _malformed(released.rows, released.tensors)):
                faults.damaged(party.name, f"{log}/index.jsonl", problem, line)
            elif released.tensors:
                (values,) = released.tensors.values()
                key = released.point, released.exchange.round
                pieces.setdefault(key, []).append((released.rows, values, line))
    return {key: _once(_joined(piece), party, log, faults) for key, piece in pieces.items()}


def _malformed(rows: Array, tensors: Mapping[str, Array]) -> str:
    """A sentence where a prediction is not one tensor with one entry for each of ``rows``, else ""."""
    if len(tensors) != 1:
        return f"this prediction holds {len(tensors)} tensors, every party sends one"
    (values,) = tensors.values()
    if rows.ndim == 1 and values.ndim >= 1 and len(values) == len(rows):
        return ""
    return (
        f"this prediction of rows {rows.shape} holds numbers of shape {values.shape}: one for each row is due"
    )


def _joined(pieces: Iterable[tuple[Array, Array, int]]) -> LoggedRows:
    rows, content, lines = zip(*((r, _bytes(v), np.full(len(r), n)) for r, v, n in pieces), strict=True)
    width = max(c.shape[1] for c in content)
    padded = [np.pad(c, ((0, 0), (0, width - c.shape[1]))) for c in content]
    return LoggedRows(np.concatenate(rows), np.concatenate(padded), np.concatenate(lines))


def _bytes(values: Array) -> Array:
    """The bytes of each row of ``values`` (n, k), uint8 (n, b)."""
    width = math.prod(values.shape[1:])
    return np.ascontiguousarray(values).reshape(len(values), width).view(np.uint8)


def _once(found_rows: LoggedRows, party: PartyRun, log: str, faults: Found) -> LoggedRows:
    """The rows in order, each once; one that stands twice with other bytes was drawn twice."""
    order = np.argsort(found_rows.rows, kind="stable")
    rows, content, lines = (a[order] for a in (found_rows.rows, found_rows.content, found_rows.lines))
    again = np.flatnonzero(rows[1:] == rows[:-1]) + 1
    for place in again[(content[again] != content[again - 1]).any(axis=1)][:1]:
        problem = f"row {rows[place]} stands here and in line {lines[place - 1]} with other values"
        faults.differs(party.name, f"{log}/index.jsonl", problem, int(lines[place]))
    kept = np.delete(np.arange(len(rows)), again)
    return LoggedRows(rows[kept], content[kept], lines[kept])


def _nothing(like: LoggedRows) -> LoggedRows:
    return LoggedRows(like.rows[:0], like.content[:0], like.lines[:0])


def _compare(
    sender: PartyRun, receiver: PartyRun, released: LoggedRows, received: LoggedRows, faults: Found
) -> None:
    """Find the first row with other bytes, the rows that only one of the two has."""
    file = "transcript/index.jsonl"
    _, a, b = np.intersect1d(released.rows, received.rows, return_indices=True)
    width = released.content.shape[1]
    if len(received.rows) and received.content.shape[1] != width:
        problem = f"rows from {sender.name!r} have other widths than it released"
        faults.differs(receiver.name, file, problem, int(received.lines[0]))
        return
    for place in b[(released.content[a] != received.content[b]).any(axis=1)][:1]:
        problem = f"prediction row {received.rows[place]} has other bytes than {sender.name!r} released"
        faults.differs(receiver.name, file, problem, int(received.lines[place]))
    for place in np.delete(np.arange(len(received.rows)), b)[:1]:
        problem = f"prediction row {received.rows[place]} was not released by {sender.name!r}"
        faults.differs(receiver.name, file, problem, int(received.lines[place]))
    if lacking := len(released.rows) - len(a):
        that = f"that {sender.name!r} released"
        due = counted(lacking, f"prediction row {that} is", many=f"prediction rows {that} are")
        problem = f"{due} missing"
        if {sender.status.state, receiver.status.state} == {"finished"}:
            faults.differs(receiver.name, file, problem)
        else:
            faults.notes.append(f"{receiver.name}: {problem}: the run did not end in order")
