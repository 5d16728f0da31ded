"""A folder that was changed between a stop and ``resume`` is refused; what a kill leaves goes on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import horizontal
import pytest
from accidents import started, train_until, trainer
from laboratory import deal, experiment, let_go_later
from oneprocess import LocalFederation

from vflens.config import load_party
from vflens.errors import StorageError
from vflens.services.folder import begin
from vflens.storage.chain import LINK_BYTES
from vflens.storage.files import load_arrays, save_arrays
from vflens.storage.transcript import Transcript

GONE = "gone"
LIMITS: dict[str, Any] = {"checkpoint_steps": 3}
REMEDY = "bring back the folder as it was, or begin a new run, without --resume$"
ROLES = ("passive", "active", "coordinator", "client", "server")


def killed(home: Path, who: str, **changes: Any) -> LocalFederation:
    """A federation with the party ``who``, all of which die eight steps or three rounds after the start."""
    if who in ("client", "server"):
        tables = {"client": horizontal.table(20, 1), "other": horizontal.table(20, 2)}
        files = horizontal.deal(home, tables, limits={"checkpoint_steps": 1}, **changes)
    else:
        files = deal(experiment(home, limits=LIMITS, **changes), home)
    for file in files.values():
        begin(load_party(file))
    local = let_go_later(LocalFederation(files, lambda stage, done, total: None))
    trainer(local).prepare()
    train_until(local, 3 if who in ("client", "server") else 8)
    for member in local.members():
        for log in (member.transcript, member.recovery, member.gate):
            log.close()
    return local


def resume(local: LocalFederation, who: str) -> None:
    """Begin as a process does in its folder."""
    config = local.parties[who].config.model_copy(update={"resume": True})
    assert begin(config)
    again = started(config, {})
    try:
        again.resume()
    finally:
        for log in (again.transcript, again.recovery, again.gate):
            log.close()


def _scaled(folder: Path) -> None:
    file = folder / "recovery/checkpoint.npz"
    save_arrays(file, {n: a * 1.5 if a.dtype.kind == "f" else a for n, a in load_arrays(file).items()})


def _renamed(folder: Path) -> None:
    """The same numbers under other names."""
    file = folder / "recovery/checkpoint.npz"
    save_arrays(file, {f"{n} ": a for n, a in load_arrays(file).items()})


def _removed(folder: Path) -> None:
    (folder / "recovery/checkpoint.npz").unlink()


@pytest.mark.parametrize("who", ROLES)
@pytest.mark.parametrize("change", [_scaled, _renamed, _removed])
def test_another_checkpoint_is_refused(tmp_path: Path, who: str, change: Callable[[Path], None]) -> None:
    local = killed(tmp_path, who)
    resume(local, who)
    change(tmp_path / who)
    with pytest.raises(
        StorageError,
        match=rf"^{tmp_path / who}/recovery/checkpoint\.npz is not the one that state\.json \(checkpoints\) "
        rf"names: {REMEDY}",
    ):
        resume(local, who)


def _no_transcript(folder: Path) -> None:
    shutil.rmtree(folder / "transcript")


def _cut(folder: Path) -> None:
    """The records of some steps, with their links."""
    index, links = folder / "transcript/index.jsonl", folder / "transcript/chain.bin"
    lines = index.read_bytes().splitlines(keepends=True)[:2]
    index.write_bytes(b"".join(lines))
    with links.open("r+b") as out:
        out.truncate(len(lines) * LINK_BYTES)


def _linked_anew(folder: Path) -> None:
    """One number of the first record is another one, and all links fit."""
    payload = folder / "transcript/payload.bin"
    data = bytearray(payload.read_bytes())
    first = (folder / "transcript/index.jsonl").read_bytes().splitlines()[0]
    data[json.loads(first)["tensors"][0]["offset"]] ^= 1
    payload.write_bytes(data)
    (folder / "transcript/chain.bin").unlink()
    Transcript(folder / "transcript", party=folder.name).close()


@pytest.mark.parametrize("who", ROLES)
@pytest.mark.parametrize(
    ("change", "refused"),
    [
        (_no_transcript, r"has 0 records, and had \d+"),
        (_cut, r"has 2 records, and had \d+"),
        (_linked_anew, r"was changed up to record \d+"),
    ],
)
def test_a_log_behind_its_checkpoint_is_refused(
    tmp_path: Path, who: str, change: Callable[[Path], None], refused: str
) -> None:
    """With ``durable = "process"`` too: a kill takes no record, and power is not lost at every step."""
    local = killed(tmp_path, who)
    assert local.parties[who].config.limits.durable == "process"
    resume(local, who)
    change(tmp_path / who)
    with pytest.raises(
        StorageError,
        match=rf"^{tmp_path / who}/transcript {refused}, as state\.json \(heads\.transcript\) says: {REMEDY}",
    ):
        resume(local, who)


@pytest.mark.parametrize("who", ROLES)
@pytest.mark.parametrize("nonce", ["ab" * 32, ""])
def test_the_nonce_of_another_run_is_refused(tmp_path: Path, who: str, nonce: str) -> None:
    local = killed(tmp_path, who)
    file = tmp_path / who / "federation.json"
    written = json.loads(file.read_text())
    assert len(written["nonce"]) == 64
    file.write_text(json.dumps(written | {"nonce": nonce}))
    with pytest.raises(StorageError, match=rf"^{file} was changed after its run began: bring back"):
        resume(local, who)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("ended", "false", r"ended: give true or false \(got 'false'\)"),
        ("ended", 1, "ended: "),
        ("stage", "later", "stage: "),
        ("attacked", -1, r"attacked: .* 0 or more \(got -1\)"),
        ("attacked", True, "attacked: "),
        ("acted", [0, -1], r"acted\.1: "),
        ("checkpoints", None, "checkpoints: "),
        ("checkpoints", ["x"], r"checkpoints\.0: 64 hexadecimal digits, or none, are due \(got 'x'\)"),
        *((field, GONE, f"{field}: it is missing") for field in ("ended", "acted", "checkpoints", "heads")),
    ],
)
def test_a_state_that_no_party_writes_is_refused(tmp_path: Path, field: str, value: Any, words: str) -> None:
    local = killed(tmp_path, "passive")
    file = tmp_path / "passive/state.json"
    state = json.loads(file.read_text()) | {field: value}
    file.write_text(json.dumps({name: kept for name, kept in state.items() if kept != GONE}))
    refused = (
        rf"^{file} does not say how far the run has come \({words}.*\): use a folder that nobody changed, "
        "and the version of vflens that began its run$"
    )
    with pytest.raises(StorageError, match=refused):
        resume(local, "passive")


@pytest.mark.parametrize(
    "heads", [None, [], {"transcript": "x"}, {"transcript": {"records": -1, "head": ""}}]
)
def test_heads_that_no_party_writes_are_refused(tmp_path: Path, heads: Any) -> None:
    local = killed(tmp_path, "passive")
    file = tmp_path / "passive/state.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"heads": heads}))
    refused = rf"^{file} \(heads\) does not name the heads of the logs \(.+\): {REMEDY}"
    with pytest.raises(StorageError, match=refused):
        resume(local, "passive")


@pytest.mark.parametrize("who", ROLES)
@pytest.mark.parametrize("text", ["", '{"b": {"transcript": {"records": 3, "head": "d04', "[]"])
def test_damaged_heads_of_others_are_refused(tmp_path: Path, who: str, text: str) -> None:
    """Before the run goes on: at its end, where heads are added, nobody else would learn of it."""
    local = killed(tmp_path, who)
    (tmp_path / who / "heads.json").write_text(text, encoding="utf-8")
    with pytest.raises(
        StorageError, match=r"heads\.json holds no heads that can be read \(.*: bring it back"
    ):
        resume(local, who)
