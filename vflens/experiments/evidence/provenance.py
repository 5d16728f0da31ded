"""Where the figures of a DPIA come from: when runs ended, who received what, digests of inputs and logs."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from vflens.experiments.audit.record import AuditRecord
from vflens.experiments.results.findings import run_source
from vflens.experiments.results.folders import PartyRun
from vflens.experiments.results.ledger import in_bytes, lines, notes
from vflens.experiments.results.record import RecordedRun
from vflens.experiments.results.titles import places
from vflens.storage.json_file import json_object
from vflens.storage.regular import read_text, sha256
from vflens.tables.order import table_digest

_FILES = ("data.parquet", "federation.json", "metrics.parquet", "events.jsonl")


class Digest(NamedTuple):
    """A ``file`` or log of ``source`` and its digest: SHA-256, or the head of a log's hash chain."""

    source: str
    file: str
    kind: str
    digest: str


class Transfer(NamedTuple):
    """What ``receiver`` got of ``sender`` in the federation ``where`` of a ``source``."""

    source: str
    where: str
    sender: str
    receiver: str
    what: str
    messages: int
    size: str
    defended: str


class Made(NamedTuple):
    """When a ``source`` was made (UTC), and by which ``version`` of VFLens."""

    source: str
    began: str
    ended: str
    version: str


def of_file(source: str, file: Path) -> Digest:
    """The SHA-256 of ``file``.

    Raises:
        OSError: it cannot be read.
    """
    return Digest(source, file.name, "SHA-256", sha256(file))


def digests(runs: Sequence[RecordedRun]) -> Iterator[Digest]:
    """The digests of every party's own table, record and logs."""
    for run in runs:
        for p in run.parties:
            source = f"{run_source(run)}, {p.name}"
            yield from _of_table(source, p)
            yield from (of_file(source, p.folder / name) for name in _FILES if (p.folder / name).is_file())
            heads = {log: of.head for log, of in p.status.heads.items()}
            yield from (Digest(source, log, "head of its chain", head) for log, head in heads.items())


def _of_table(source: str, party: PartyRun) -> Iterator[Digest]:
    """The party's own file, as it was when the run read it, and what was read."""
    if (table := party.federation.table).sha256:
        yield Digest(source, table.file, "SHA-256 as the run read it", table.sha256)
    if digest := table_digest(party.folder):
        yield Digest(source, "its own table", "BLAKE2b of ids, values and labels", digest)


def audited(record: AuditRecord, source: str) -> Iterator[Digest]:
    """The digests of the files that an audit, the ``source``, read."""
    for file in record.files or ():
        yield Digest(source, file.file, "SHA-256 as the audit read it", file.sha256)


def audit_time(record: AuditRecord, source: str) -> Made:
    """When an audit, the ``source``, was made."""
    return Made(source, *(made or "not recorded" for made in (record.began, record.ended, record.version)))


def received(runs: Sequence[RecordedRun]) -> Iterator[Transfer]:
    """Who received what, from the ledger."""
    for run, where in zip(runs, places(runs), strict=True):
        for line in lines(run):
            c = line.crossing
            defended = ", ".join(line.defenses or ()) or "–"
            size = in_bytes(c.nbytes) if c.nbytes else "–"
            yield Transfer(
                run_source(run),
                where,
                c.sender,
                c.receiver or "not recorded",
                f"{c.phase}: {c.point}",
                messages=c.count,
                size=size,
                defended=defended,
            )


def ledger_notes(runs: Sequence[RecordedRun]) -> list[str]:
    """What the ledger does not show, run by run."""
    text = (f"{run_source(run)}: {note}" for run in runs for note in notes(run, lines(run)))
    return [f"{note[:1].upper()}{note[1:]}" for note in text]


def times(runs: Sequence[RecordedRun]) -> Iterator[Made]:
    """The times of the first and last event in the logs of each run's parties, and their versions."""
    for run in runs:
        stamps = [stamp for p in run.parties for stamp in _stamps(p)] or ["not recorded"]
        versions = {p.federation.versions.get("vflens", "not recorded") for p in run.parties}
        yield Made(run_source(run), min(stamps), max(stamps), ", ".join(sorted(versions)))


def _stamps(party: PartyRun) -> Iterator[str]:
    """The times of the first and the last whole line of a party's events."""
    file = party.folder / "events.jsonl"
    if not file.is_file():
        return
    whole = [line for line in read_text(file).splitlines() if line.endswith("}")]
    for line in (*whole[:1], *whole[-1:]):
        try:
            yield str(json_object(line)["timestamp"])
        except (ValueError, KeyError):
            continue
