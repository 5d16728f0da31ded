"""An audit of logs: whatever is changed afterwards is found, in words."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chains import link_anew, link_as_before
from commandline import Run
from laboratory import federation
from logaudits import audit_of, flip, problems_in
from splitcases import CONCATENATED

from vflens.errors import StorageError
from vflens.registry import MODELS
from vflens.services.folder import write_status
from vflens.storage.chain import LINK_BYTES
from vflens.storage.sent_heads import received_in


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of a finished run of three parties."""
    home = tmp_path_factory.mktemp("finished") / "run"
    federation(home).run()
    return home


@pytest.fixture
def home(finished: Path, tmp_path: Path) -> Path:
    """A copy of them, to be changed."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


def test_a_run_that_has_not_begun_has_nothing_to_check(tmp_path: Path, vflens: Run) -> None:
    (tmp_path / "run/a").mkdir(parents=True)
    (tmp_path / "run/a/config.toml").write_text(
        'party = "a"\nrole = "passive"\nrun = "r"\n', encoding="utf-8"
    )
    words = vflens("verify-log", tmp_path / "run")
    assert (words.code, words.out.splitlines()[-1]) == (0, "  nothing to check: no log has a record yet")
    (facts,) = json.loads(vflens("verify-log", tmp_path / "run", "--json").out)
    assert facts["fits"] is None


def test_a_link_covers_the_link_before_it_the_line_and_the_arrays(home: Path) -> None:
    folder = home / "active" / "transcript"
    lines, payload = (folder / "index.jsonl").read_bytes().splitlines(keepends=True), folder / "payload.bin"
    data, end = payload.read_bytes(), 0
    link = hashlib.blake2b(b"active/transcript", digest_size=32, person=b"vflens log").digest()
    for line in lines:
        entry = json.loads(line)
        arrays = [entry["rows"], *entry["tensors"]]
        described = "".join(
            f'{{"name":"{a["name"]}","dtype":"{a["dtype"]}","shape":{a["shape"]},"offset":' for a in arrays
        )
        contents = data[end : end + entry["nbytes"]]
        digest = hashlib.sha256(described.encode() + contents).digest()
        link = hashlib.blake2b(link + line + digest, digest_size=32, person=b"vflens record").digest()
        end += entry["nbytes"]
    assert (folder / "chain.bin").read_bytes()[-32:] == link
    status = json.loads((home / "active" / "status.json").read_text())
    assert status["heads"]["transcript"] == {"records": len(lines), "head": link.hex()}


def test_each_party_holds_the_heads_of_the_others(home: Path) -> None:
    own = {
        party: json.loads((home / party / "status.json").read_text())["heads"]
        for party in ("active", "passive", "coordinator")
    }
    for party in own:
        held = json.loads((home / party / "heads.json").read_text())
        assert set(held) == set(own) - {party}
        for other, heads in held.items():
            assert heads["transcript"] == own[other]["transcript"]
            assert heads["digests"] == own[other]["digests"]


def test_the_model_of_each_party_is_checked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local = federation(tmp_path, **CONCATENATED)
    local.run()
    registry, checked = type(MODELS), list[str]()
    get = registry.get

    def counting(names: Any, name: str) -> Any:
        checked.append(name)
        return get(names, name)

    monkeypatch.setattr(registry, "get", counting)
    audit_of(tmp_path)
    assert 1 <= len(checked) <= len(local.parties)


def _cut_line(folder: Path, number: int) -> None:
    lines = (folder / "index.jsonl").read_bytes().splitlines(keepends=True)
    del lines[number - 1]
    (folder / "index.jsonl").write_bytes(b"".join(lines))


def _damage(home: Path) -> dict[str, Callable[[], object]]:
    log = home / "passive" / "transcript"
    size = (log / "payload.bin").stat().st_size
    text = (log / "index.jsonl").read_text()
    return {
        "payload": lambda: flip(log / "payload.bin", 0),
        "payload of the last": lambda: flip(log / "payload.bin", size - 1),
        "index": lambda: (log / "index.jsonl").write_text(text.replace('"step":3,', '"step":9,', 1)),
        "link": lambda: flip(log / "chain.bin", 4 * LINK_BYTES),
        "a record less": lambda: _cut_line(log, 3),
        "the last record less": lambda: _cut_line(log, 12),
        "no JSON": lambda: (log / "index.jsonl").write_text(text.replace('"round":1,', '"round":"x",', 1)),
    }


@pytest.mark.parametrize(
    ("what", "line", "problem"),
    [
        ("payload", 1, "this record is not the one that was linked"),
        ("payload of the last", 12, "this record is not the one that was linked"),
        ("index", 4, "this record is not the one that was linked"),
        ("link", 5, "this record is not the one that was linked"),
        ("a record less", 3, "it cannot be read on"),
        ("the last record less", 12, "12 records were linked, 11 are left"),
        ("no JSON", 5, "it cannot be read on"),
    ],
)
def test_the_first_record_that_was_changed_is_named(home: Path, what: str, line: int, problem: str) -> None:
    _damage(home)[what]()
    first, *_ = problems_in(home)
    assert first.startswith(f"passive: transcript/index.jsonl, line {line}: {problem}")
    assert first.endswith(": bring back the folder as it was, or do not rely on it")


def test_a_record_that_was_linked_anew_differs_from_what_was_released_and_from_the_noted_head(
    home: Path,
) -> None:
    log = home / "passive" / "transcript"
    flip(log / "payload.bin", 100)
    link_anew(log)
    *noted, released = problems_in(home)
    holders = ("its own status.json holds", "active's heads.json holds", "coordinator's heads.json holds")
    assert all(holder in "".join(noted) for holder in holders)
    accused = [p.split(": ")[0] for p in noted]  # heads are not signed: a holder may have changed its own
    assert accused == ["passive", "passive", "active", "passive", "coordinator"]
    assert (
        "transcript/index.jsonl, line 1: gradient of train step 0 has other bytes than 'active'" in released
    )


def test_an_owner_of_one_folder_cannot_deny_the_head_that_another_holds(home: Path) -> None:
    """The attacker changes a record, all links and its own status; the other gives heads.json alone."""
    log = home / "passive" / "transcript"
    flip(log / "payload.bin", 100)
    link_anew(log)
    write_status(home / "passive", "finished")
    for other in ("active", "coordinator"):
        shutil.rmtree(home / other / "transcript")
        shutil.rmtree(home / other / "released")
    found = [p for p in problems_in(home) if "no such log was given" not in p]
    assert [p.split(": ")[0:2] for p in found] == [
        ["passive", "transcript/chain.bin"], ["active", "heads.json"],
        ["passive", "transcript/chain.bin"], ["coordinator", "heads.json"],
    ]  # fmt: skip


def test_a_log_that_its_owner_cut_is_shorter_than_the_heads_of_others(home: Path) -> None:
    """The last two records go with their payloads and links, and the own status is written anew."""
    log = home / "passive" / "transcript"
    lines = (log / "index.jsonl").read_bytes().splitlines(keepends=True)
    gone = sum(json.loads(line)["nbytes"] for line in lines[-2:])
    for name, size in (("index.jsonl", sum(map(len, lines[-2:]))), ("payload.bin", gone), ("chain.bin", 64)):
        with (log / name).open("r+b") as file:
            file.truncate((log / name).stat().st_size - size)
    write_status(home / "passive", "finished")
    problems = "".join(problems_in(home))
    for holder in ("active", "coordinator"):
        assert f"it has fewer records than the {len(lines)} whose head {holder}'s heads.json" in problems
    assert "2 releases of 'active' are missing" in problems


def test_two_heads_of_one_log_are_found_without_the_log(home: Path) -> None:
    """The coordinator relays the heads: it can give each receiver others."""
    shutil.rmtree(home / "passive")
    assert problems_in(home) == []
    file = home / "active" / "heads.json"
    held = json.loads(file.read_text())
    held["passive"]["transcript"]["head"] = "0" * 64
    file.write_text(json.dumps(held))
    for problem, (one, other) in zip(
        problems_in(home), (("coordinator", "active"), ("active", "coordinator")), strict=True
    ):
        assert problem.startswith(f"{one}: heads.json: its head of the first 12 records of 'passive' tran")
        assert f"is not the one that {other!r} holds (not signed)" in problem
    held["passive"]["transcript"]["records"] = 11  # heads of two lengths say nothing of each other
    file.write_text(json.dumps(held))
    assert problems_in(home) == []


def test_receivers_are_compared_where_the_sender_gave_no_folder(home: Path) -> None:
    shutil.rmtree(home / "active")
    log = home / "passive" / "transcript"
    flip(log / "payload.bin", 100)
    link_anew(log)
    assert any(
        "gradient of train step 0 from 'active' has other bytes than at" in p for p in problems_in(home)
    )


@pytest.mark.parametrize("place", [0, -1])
def test_a_changed_prediction_is_found_on_either_side(home: Path, place: int) -> None:
    log = home / "passive" / "released"
    flip(log / "payload.bin", place)
    link_anew(log)
    problems = [p for p in problems_in(home) if "chain.bin" not in p and "heads.json" not in p]
    assert problems
    assert all("prediction row" in p or "rows that 'passive' released are missing" in p for p in problems)


def test_a_record_that_nobody_released_and_one_that_never_came_are_found(home: Path) -> None:
    digests = home / "active" / "released" / "digests.bin"
    data = digests.read_bytes()
    digests.write_bytes(data[50:])
    assert any("gradient of train step 0 from 'active' has no counterpart" in p for p in problems_in(home))
    digests.write_bytes(data + data[-50:-49] + bytes([1]) + bytes(7) + b"\x07" + data[-40:])
    assert problems_in(home)
    digests.write_bytes(data + data[:2] + (2).to_bytes(8, "little") + (99).to_bytes(8, "little") + bytes(32))
    lacking = [p for p in problems_in(home) if "is missing" in p]
    assert [p.split(":")[0] for p in lacking] == ["passive", "coordinator"]
    assert "1 release of 'active' is missing, the first is gradient of train step 99" in lacking[0]


def test_a_second_draw_of_one_release_is_found(home: Path) -> None:
    digests = home / "passive" / "released" / "digests.bin"
    data = digests.read_bytes()
    digests.write_bytes(data + data[:50])  # repeated after a restart: the same bytes
    assert not [p for p in problems_in(home) if "released before" in p]
    digests.write_bytes(data + data[:18] + bytes(32))
    (problem,) = [p for p in problems_in(home) if "released before" in p]
    assert "embedding of train step 0, was released before with other values" in problem


# --- what is no damage is said in words


def test_a_half_written_last_line_and_links_not_yet_written_are_notes(home: Path) -> None:
    log = home / "passive" / "transcript"
    write_status(home / "passive", "interrupted", "the process was killed")
    with (log / "index.jsonl").open("ab") as index:
        index.write(b'{"sender":"act')
    with (log / "chain.bin").open("r+b") as links:
        links.truncate(11 * LINK_BYTES)
    for other in ("active", "coordinator"):
        (home / other / "heads.json").unlink()  # a killed party sends no heads
    status = home / "passive" / "status.json"
    status.write_text('{"state": "interrupted", "reason": "the process was killed"}')
    found = audit_of(home).found
    assert found.findings == []
    assert any("the last line of transcript/index.jsonl is half-written" in note for note in found.notes)
    assert any("the last 1 record of transcript/index.jsonl has no link" in note for note in found.notes)


def test_records_after_the_end_of_a_finished_log_are_found(home: Path) -> None:
    with (home / "passive" / "transcript" / "chain.bin").open("r+b") as links:
        links.truncate(11 * LINK_BYTES)
    assert any("1 record has no link: it was added later" in p for p in problems_in(home))


def test_a_folder_from_before_the_chain_is_said_to_have_none(home: Path) -> None:
    for other in ("active", "coordinator"):
        (home / other / "heads.json").unlink()  # its peers were of an earlier version too
    for log in ("transcript", "released"):
        (home / "passive" / log / "chain.bin").unlink()
    (home / "passive" / "released" / "digests.bin").unlink()
    (home / "passive" / "status.json").write_text('{"state": "finished", "reason": ""}')
    found = audit_of(home).found
    assert found.findings == []
    assert any("passive: transcript/ was written before logs had a chain" in note for note in found.notes)
    assert any("passive: released/ has no digests" in note for note in found.notes)


def test_folders_of_earlier_versions_fit_by_their_own_links(home: Path) -> None:
    """Their links hash the payloads, and their heads are of those links."""
    held: dict[str, dict[str, dict[str, Any]]] = {}
    for party in ("active", "passive", "coordinator"):
        held[party] = json.loads((home / party / "status.json").read_text())["heads"]
        for log in ("transcript", "released"):
            if links := link_as_before(home / party / log):
                held[party][log] = {"records": len(links), "head": links[-1].hex()}
        status = {"state": "finished", "reason": "", "heads": held[party]}
        (home / party / "status.json").write_text(json.dumps(status))
    for party in held:
        others = {name: heads for name, heads in held.items() if name != party}
        (home / party / "heads.json").write_text(json.dumps(others))
        federation_ = json.loads((home / party / "federation.json").read_text())
        del federation_["nonce"]
        (home / party / "federation.json").write_text(json.dumps(federation_))
    assert problems_in(home) == []
    flip(home / "active" / "transcript" / "payload.bin", 100)
    assert any("this record is not the one that was linked" in problem for problem in problems_in(home))


def test_the_log_of_another_party_does_not_fit(home: Path) -> None:
    shutil.rmtree(home / "passive" / "transcript")
    shutil.copytree(home / "active" / "transcript", home / "passive" / "transcript")
    assert any("passive: transcript/index.jsonl, line 1: this record is not" in p for p in problems_in(home))


@pytest.mark.parametrize("records", ["1e400", "-1", "null"])
def test_heads_that_no_party_sends_are_no_heads(tmp_path: Path, records: str) -> None:
    head = f'"records": {records}, "head": ' + json.dumps("0" * 64)
    (tmp_path / "heads.json").write_text('{"active": {"transcript": {' + head + "}}}")
    with pytest.raises(StorageError, match=r"heads\.json holds no heads that can be read .*, or remove it$"):
        received_in(tmp_path)


# --- the command


def test_the_command_prints_heads_and_ends_with_the_kind_of_what_it_found(home: Path, vflens: Run) -> None:
    code, out, _ = vflens("verify-log", home, "--json")
    (document,) = json.loads(out)
    assert (code, document["fits"]) == (0, True)
    head = document["logs"]["active"]["transcript"]["head"]
    assert head in vflens("verify-log", home)[1]
    flip(home / "passive" / "transcript" / "payload.bin", 0)
    code, out, error = vflens("verify-log", home, "--json")
    assert (code, json.loads(out)[0]["findings"][0]["line"]) == (12, 1)
    assert error.startswith("error: passive: transcript/index.jsonl, line 1: ")
    link_anew(home / "passive" / "transcript")
    (home / "passive" / "status.json").unlink()
    for other in ("active", "coordinator"):
        (home / other / "heads.json").unlink()
    assert vflens("verify-log", home)[0] == 5
    (home / "active" / "heads.json").write_text('{"passive": {"transcript": {"records": -1, "head": "0"}}}')
    code, _, error = vflens("verify-log", home)
    assert (code, "heads.json cannot be read as heads" in error) == (3, True)
