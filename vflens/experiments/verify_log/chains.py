"""One party's logs against the links that it wrote."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from vflens.errors import StorageError
from vflens.experiments.results.folders import PartyRun
from vflens.experiments.verify_log.finding import Found
from vflens.storage import chain, release_digests
from vflens.storage.chain import NONE, Head
from vflens.storage.journal import records
from vflens.storage.json_file import in_words
from vflens.words import counted


@dataclass(frozen=True)
class CheckedLog:
    """A log that was read: its newest head, and its link after any number of records (None: it has fewer)."""

    head: Head
    after: Callable[[int], bytes | None]


def checked_logs(party: PartyRun, faults: Found) -> Mapping[str, CheckedLog]:
    """The logs of ``party`` by name, each compared with its own links."""
    logs = {name: _checked(party, name, faults) for name in ("transcript", "released")}
    logs["digests"] = _checked_digests(party, faults)
    return {name: log for name, log in logs.items() if log is not None}


def _checked(party: PartyRun, name: str, faults: Found) -> CheckedLog | None:
    folder = party.folder / name
    if not (folder / "index.jsonl").exists():
        faults.notes.append(f"{party.name}: no {name}/ was given: nothing of it is checked")
        return None
    if (size := _size(folder / chain.FILE)) > _size(folder / "index.jsonl"):  # before it takes memory
        problem = (
            f"it has {counted(size, 'byte', ',')}, more than index.jsonl: a link is shorter than any line"
        )
        faults.damaged(party.name, f"{name}/{chain.FILE}", problem)
        return None
    links = chain.links(folder)
    if (folder / chain.FILE).exists():
        _check_links(party, name, links, faults)
    else:
        faults.notes.append(
            f"{party.name}: {name}/ was written before logs had a chain: its records have no links"
        )
    if (folder / "left_out.json").exists():
        faults.notes.append(f"{party.name}: {name}/ is sampled: messages that it left out have no links")
    return CheckedLog(Head(len(links), links[-1] if links else NONE), lambda n: _after(links, n))


def _check_links(party: PartyRun, name: str, links: list[bytes], faults: Found) -> None:
    """Name the first record of a log that does not fit ``links``; what is torn at the end is noted."""
    folder, file = party.folder / name, f"{name}/index.jsonl"
    count, read, fits = 0, 0, True
    try:
        for count, record in enumerate(records(folder), 1):
            read += len(record.line)
            if count > len(links) or not fits:
                continue
            fits = chain.fits(links, count, f"{party.name}/{name}", record)
            if not fits:
                problem = (
                    "this record is not the one that was linked: the line, its payload or a link was changed"
                )
                faults.damaged(party.name, file, problem, count)
    except StorageError as error:
        faults.damaged(party.name, file, f"it cannot be read on ({in_words(error)})", count + 1)
        return
    if read < (folder / "index.jsonl").stat().st_size:
        faults.notes.append(
            f"{party.name}: the last line of {file} is half-written, as a crash leaves it: a restart drops it"
        )
    _check_number(party, file, count, len(links), faults)


def _check_number(party: PartyRun, file: str, records: int, links: int, faults: Found) -> None:
    if links > records:
        problem = f"{counted(links, 'record was', many='records were')} linked, {records} are left"
        faults.damaged(party.name, file, problem, records + 1)
    elif records > links and party.status.state == "finished":
        added = "it was added" if records - links == 1 else "they were added"
        faults.damaged(
            party.name,
            file,
            f"{counted(records - links, 'record has', many='records have')} no link: {added} later",
            links + 1,
        )
    elif records > links:
        have = counted(records - links, f"record of {file} has", many=f"records of {file} have")
        faults.notes.append(
            f"{party.name}: the last {have} no link: the party was stopped "
            "before it wrote them, or they were added later"
        )


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _after(links: list[bytes], records: int) -> bytes | None:
    if records > len(links):
        return None
    return links[records - 1] if records else NONE


def _checked_digests(party: PartyRun, faults: Found) -> CheckedLog | None:
    folder = party.folder / "released"
    if not folder.exists():
        return None
    if not (folder / release_digests.FILE).exists():
        faults.notes.append(
            f"{party.name}: released/ has no digests: releases in training and disclosures are not compared"
        )
        return CheckedLog(Head(0, NONE), lambda count: None)
    head = release_digests.head(folder)

    def after(count: int) -> bytes | None:
        return release_digests.head(folder, count).link if count <= head.records else None

    return CheckedLog(head, after)
