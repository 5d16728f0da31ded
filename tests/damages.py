"""Changes of a run's logs that an audit finds."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from chains import link_anew

from vflens.storage.chain import LINK_BYTES


def flip_a_byte(home: Path) -> None:
    payload = home / "coordinator/transcript/payload.bin"
    data = bytearray(payload.read_bytes())
    data[sum(sizes_of(home, "coordinator")[:2])] ^= 1  # the first of the third record
    payload.write_bytes(data)


def remove_a_record(home: Path) -> None:
    _rearrange(home / "coordinator/transcript", lambda kept: kept.pop(2))


def swap_two_records(home: Path) -> None:
    _rearrange(home / "coordinator/transcript", lambda kept: kept.insert(2, kept.pop(3)))


def shorten_the_payload(home: Path) -> None:
    payload = home / "coordinator/transcript/payload.bin"
    payload.write_bytes(payload.read_bytes()[:-1])


def shorten_the_log(home: Path) -> None:
    """By its last record, with its link."""
    folder = home / "coordinator/transcript"
    _rearrange(folder, lambda kept: kept.pop())
    (folder / "chain.bin").write_bytes((folder / "chain.bin").read_bytes()[:-LINK_BYTES])


def forget_a_release(home: Path) -> None:
    digests = home / "active/released/digests.bin"
    digests.write_bytes(digests.read_bytes()[:-50])


def exchange_a_head_wrongly(home: Path) -> None:
    """The active party holds the passive one's head as the coordinator's."""
    file = home / "active/heads.json"
    heads = json.loads(file.read_text())
    heads["coordinator"]["transcript"]["head"] = heads["passive"]["transcript"]["head"]
    file.write_text(json.dumps(heads))


def release_another_row(home: Path) -> None:
    """By the owner of the folder, all links anew; of the other folders nobody noted a head."""
    folder = home / "passive/released"
    payload = bytearray((folder / "payload.bin").read_bytes())
    payload[0] ^= 1
    (folder / "payload.bin").write_bytes(payload)
    link_anew(folder)
    (home / "passive/status.json").write_text('{"state": "finished", "reason": ""}')
    for other in ("active", "coordinator"):
        (home / other / "heads.json").unlink()


def sizes_of(home: Path, party: str) -> list[int]:
    lines = (home / party / "transcript/index.jsonl").read_text().splitlines()
    return [json.loads(line)["nbytes"] for line in lines]


def _rearrange(folder: Path, change_order: Callable[[list[int]], object]) -> None:
    """Write the log's records in another order: lines and payloads, with places that fit."""
    lines = (folder / "index.jsonl").read_text().splitlines(keepends=True)
    data, kept = (folder / "payload.bin").read_bytes(), list(range(len(lines)))
    change_order(kept)
    payload, written = b"", ""
    for number in kept:
        entry = json.loads(lines[number])
        start = entry["rows"]["offset"]
        written += _moved(lines[number], len(payload) - start)
        payload += data[start : start + entry["nbytes"]]
    (folder / "payload.bin").write_bytes(payload)
    (folder / "index.jsonl").write_text(written)


def _moved(line: str, by: int) -> str:
    return re.sub(r'"offset":(\d+)', lambda found: f'"offset":{int(found[1]) + by}', line)


CHANGED = "coordinator: transcript/index.jsonl, line 3: this record is not the one that was linked"
DAMAGE: dict[Callable[[Path], None], str] = {
    flip_a_byte: CHANGED,
    remove_a_record: CHANGED,
    swap_two_records: CHANGED,
    shorten_the_payload: "coordinator: transcript/index.jsonl, line LAST: COUNT records were linked",
    shorten_the_log: "coordinator: transcript/chain.bin: it has fewer records than the COUNT whose head",
    forget_a_release: "active: released/digests.bin: it has fewer records than the",
    exchange_a_head_wrongly: "active: heads.json: its heads of 'coordinator' are not those that ",
    release_another_row: "coordinator: transcript/index.jsonl, line ",
}
