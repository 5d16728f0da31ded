"""The log on disk: what is appended comes back, whatever happens to its tail."""

from __future__ import annotations

import errno
import json
import mmap
import os
import re
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from laboratory import NOTHING, payload, same
from nonempty import nonempty

from vflens.errors import StorageError
from vflens.storage import journal
from vflens.storage.journal import BLOCK_BYTES, Journal, Reader, digest, read
from vflens.types import Phase, Point, Released

DTYPES = ("<f8", "<f4", "<i8", "<i4", "|u1", "|b1")
RNG = np.random.default_rng(0)


def _small(step: int) -> Released:
    rows = np.arange(step, step + 3, dtype=np.int32)
    return payload({"embedding": RNG.normal(size=(3, 2)), "more": np.ones(step % 2)}, rows=rows, step=step)


def _write(folder: Path, entries: list[Released]) -> None:
    log = Journal(folder)
    for entry in entries:
        log.append(entry)
    log.close()


def _assert_holds(folder: Path, entries: list[Released]) -> None:
    found = list(read(folder))
    assert len(found) == len(entries)
    for a, b in zip(found, entries, strict=True):
        assert same(a, b)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (0, 4), (2, 0), (2, 3), (2, 3, 4)])
def test_every_dtype_and_shape_comes_back(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    array = (RNG.normal(size=shape) * 100).astype(dtype)
    entry = payload({"x": array}, rows=np.arange(3, dtype=np.int32))
    _write(tmp_path, [_small(0), entry, _small(1)])
    found = list(read(tmp_path))[1]
    assert same(found, entry)
    assert not found.tensor("x").flags.writeable


def test_minus_infinity_and_every_field_come_back(tmp_path: Path) -> None:
    scores = np.array([[-np.inf, -0.0], [np.inf, np.nan]])
    entries = [
        payload({"scores": scores}, sender="α-β", point=point, phase=phase, step=7)
        for point in Point
        for phase in Phase
    ]
    _write(tmp_path, entries)
    _assert_holds(tmp_path, entries)


def test_withheld_is_not_empty(tmp_path: Path) -> None:
    entries = [payload(None), payload({}), payload({"x": NOTHING})]
    _write(tmp_path, entries)
    assert [e.tensors is None for e in read(tmp_path)] == [True, False, False]
    _assert_holds(tmp_path, entries)


def test_payloads_larger_than_a_block_come_back(tmp_path: Path) -> None:
    entries = [payload({"x": RNG.normal(size=(1, n))}, step=n) for n in (8191, 8192, 8193, 50_000, 1)]
    assert max(e.nbytes for e in entries) > 6 * BLOCK_BYTES
    _write(tmp_path, entries)
    _assert_holds(tmp_path, entries)


def test_an_entry_may_be_read_before_the_log_is_closed(tmp_path: Path) -> None:
    log = Journal(tmp_path)
    log.append(_small(0))
    assert [e.exchange.step for e in log] == [0]
    log.append(_small(1))
    assert [e.exchange.step for e in log] == [0, 1]
    log.close()
    assert [e.exchange.step for e in log] == [0, 1]


def _cut(folder: Path, name: str, length: int) -> None:
    with (folder / name).open("r+b") as file:
        file.truncate(length)


@pytest.mark.parametrize("name", ["index.jsonl", "payload.bin"])
def test_a_tail_torn_at_any_byte_is_dropped_and_appending_goes_on(tmp_path: Path, name: str) -> None:
    entries, last = [_small(0), _small(1)], _small(2)
    whole = tmp_path / "whole"
    _write(whole, entries)
    kept = (whole / name).stat().st_size
    _write(whole, [last])
    for length in nonempty(range(kept, (whole / name).stat().st_size)):
        folder = tmp_path / str(length)
        shutil.copytree(whole, folder)
        _cut(folder, name, length)
        _assert_holds(folder, entries)
        _write(folder, [])
        _assert_holds(folder, entries)
        _write(folder, [last])
        assert digest(folder) == digest(whole)


def test_a_garbled_last_line_is_dropped(tmp_path: Path) -> None:
    _write(tmp_path, [_small(0)])
    before = digest(tmp_path)
    with (tmp_path / "index.jsonl").open("ab") as file:
        file.write(b"\0" * 30 + b"\n")
    _write(tmp_path, [])
    assert digest(tmp_path) == before


@pytest.mark.parametrize("damage", ["garbled", "without its payload"])
def test_a_damaged_line_before_others_is_refused_and_nothing_is_cut(tmp_path: Path, damage: str) -> None:
    _write(tmp_path, [_small(step) for step in range(4)])
    index = tmp_path / "index.jsonl"
    lines = index.read_bytes().splitlines(keepends=True)
    begun = Reader(tmp_path)
    index.write_bytes(lines[0])
    assert len(list(begun.select(Point.EMBEDDING))) == 1
    if damage == "garbled":
        lines[2] = b"x" * 20 + b"\n"
    else:
        os.truncate(tmp_path / "payload.bin", json.loads(lines[2])["rows"]["offset"] + 1)
    index.write_bytes(b"".join(lines))
    before = digest(tmp_path)
    readings: tuple[Callable[[], object], ...] = (
        lambda: list(read(tmp_path)),
        lambda: begun.select(Point.EMBEDDING),
        lambda: Journal(tmp_path),
    )
    for reading in readings:
        with pytest.raises(StorageError, match=rf"^{re.escape(str(index))}: line 3 is damaged, or .*: bring"):
            reading()
    assert digest(tmp_path) == before


def test_lines_that_come_while_a_log_is_read_are_left_for_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their payload may lie behind what was mapped: that is no damage."""
    log = Journal(tmp_path)
    log.append(_small(0))
    mapped = mmap.mmap

    def grows(*args: Any, **options: Any) -> Any:
        found = mapped(*args, **options)
        for step in (1, 2, 3):
            log.append(_small(step))
        return found

    with monkeypatch.context() as patch:
        patch.setattr(mmap, "mmap", grows)
        assert [e.exchange.step for e in read(tmp_path)] == [0]
    assert [e.exchange.step for e in read(tmp_path)] == [0, 1, 2, 3]
    log.close()


def test_an_index_without_its_payload_is_an_empty_log(tmp_path: Path) -> None:
    _write(tmp_path, [_small(0)])
    (tmp_path / "payload.bin").unlink()
    _write(tmp_path, [_small(1)])
    assert [e.exchange.step for e in read(tmp_path)] == [1]


def test_restart_forgets_everything(tmp_path: Path) -> None:
    log = Journal(tmp_path / "a")
    log.append(_small(0))
    log.restart()
    assert list(log) == []
    entry = _small(1)
    log.append(entry)
    log.close()
    _write(tmp_path / "b", [entry])
    assert digest(tmp_path / "a") == digest(tmp_path / "b")


def test_equal_logs_have_equal_digests_and_others_do_not(tmp_path: Path) -> None:
    entries = [_small(0), _small(1)]
    for entry in entries:
        _write(tmp_path / "reopened", [entry])
    _write(tmp_path / "at once", entries)
    assert digest(tmp_path / "reopened") == digest(tmp_path / "at once")

    tensors = {n: t.copy() for n, t in (entries[1].tensors or {}).items()}
    tensors["embedding"][0, 0] = np.nextafter(tensors["embedding"][0, 0], np.inf)
    changed = Released(
        entries[1].sender, entries[1].exchange, entries[1].point, entries[1].rows, tensors=tensors
    )
    _write(tmp_path / "one bit", [entries[0], changed])
    _write(tmp_path / "reordered", entries[::-1])
    assert len({digest(tmp_path / n) for n in ("at once", "one bit", "reordered")}) == 3


def test_a_folder_without_a_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"is not a readable log .* bring it back as it was"):
        list(read(tmp_path))


def _full_after(blocks: int) -> Callable[[Any, bytes], None]:
    """A disk that takes so many blocks and then is full."""
    write, left = journal._write_blocks, [blocks]

    def writing(file: Any, data: bytes) -> None:
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        left[0] -= 1
        write(file, data)

    return writing


def test_a_full_disk_is_a_sentence_and_earlier_entries_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Journal(tmp_path)
    log.append(_small(0))
    monkeypatch.setattr(journal, "_write_blocks", _full_after(1))  # the payload, but not its index line
    sentence = r"cannot be written \(No space left on device\): free space or choose another `out`"
    with pytest.raises(StorageError, match=sentence):
        log.append(_small(1))
    big = payload({"x": np.zeros(BLOCK_BYTES)}, step=2)
    with pytest.raises(StorageError, match=sentence):
        log.append(big)
    log.close()
    assert [e.exchange.step for e in read(tmp_path)] == [0]
    monkeypatch.undo()
    _write(tmp_path, [_small(3)])
    assert [e.exchange.step for e in read(tmp_path)] == [0, 3]


@pytest.mark.parametrize(
    "change",
    [
        {"tensors": 3},
        {"rows": None},
        {"rows": {"name": "", "dtype": "<i4", "shape": ["x"], "offset": 0}},
        {"rows": {"name": "", "dtype": "<i4", "shape": [1], "offset": None}},
        {"rows": {"name": "", "dtype": "<i4", "shape": [1], "offset": -4}},
        {"rows": {"name": "", "dtype": "nonsense", "shape": [1], "offset": 0}},
        {"rows": {"name": "", "dtype": "|O", "shape": [0], "offset": 0}},
        {"rows": {"name": "", "dtype": "<i4", "shape": [1.0], "offset": 0}},
        {"rows": {"name": "", "dtype": "<i4", "shape": [0, 2**62], "offset": 0}},
        {"rows": {"name": "", "dtype": "<i4", "shape": [0] * 9, "offset": 0}},
        {"tensors": [{"name": 1, "dtype": "<f8", "shape": [1], "offset": 0}]},
        {"phase": "supper"},
        {"step": {}},
        {"step": -1},
        {"sender": ["a"]},
        {"withheld": 0},
        {"more": 1},
    ],
)
def test_an_index_line_that_no_journal_wrote_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    _write(tmp_path, [_small(0)])
    index = tmp_path / "index.jsonl"
    index.write_text(json.dumps(json.loads(index.read_text()) | change) + "\n")
    with pytest.raises(StorageError, match="is not a readable log"):
        list(read(tmp_path))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"[" * 200_000, r"a line: it is no JSON"),
        (b'{"rows":' * 200_000, r"more than 1048576 bytes"),
        (b" " * 2**20, r"more than 1048576 bytes"),
        (
            b'{"sender":"a","run":"r","phase":"train","round":0,"step":0,"point":"scores",'
            b'"rows":{"name":"","dtype":"<i4","shape":[50000000,"a"],"offset":0}}',
            r"rows\.shape\.1: give a whole number",
        ),
    ],
)
def test_a_hostile_line_is_one_sentence_and_takes_no_memory(
    tmp_path: Path, line: bytes, problem: str
) -> None:
    _write(tmp_path, [])
    (tmp_path / "index.jsonl").write_bytes(line + b"\n")
    tracemalloc.start()
    try:
        with pytest.raises(
            StorageError, match=rf"^[^\n]* is not a readable log \([^\n]*{problem}[^\n]*\): bring"
        ):
            list(read(tmp_path))
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


@given(data=st.data())
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_line_says_it_is_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    """A line of ours with something else at some place, or bytes flipped in it."""
    folder = tmp_path / "log"
    if not folder.exists():
        _write(folder, [_small(0)])
        shutil.copy(folder / "index.jsonl", tmp_path / "ours")
    entry = json.loads((tmp_path / "ours").read_text())
    at = data.draw(st.sampled_from([entry, entry["rows"], entry["tensors"][0]]))
    at[data.draw(st.sampled_from(sorted(at)))] = data.draw(_JSON)
    line = bytearray(json.dumps(entry).encode() + b"\n")
    if data.draw(st.booleans()):
        line[data.draw(st.integers(0, len(line) - 1))] ^= data.draw(st.integers(1, 255))
    (folder / "index.jsonl").write_bytes(line)
    size = (folder / "payload.bin").stat().st_size
    refusal = ""
    try:
        assert all(released.nbytes <= 4 * size for released in read(folder))
    except StorageError as error:
        refusal = str(error)
    assert "\n" not in refusal


@pytest.mark.parametrize("line", ["[]", "3", '{"rows": {}}'])
def test_a_log_with_such_a_line_is_not_opened(tmp_path: Path, line: str) -> None:
    _write(tmp_path, [_small(0)])
    (tmp_path / "index.jsonl").write_text(f"{line}\n")
    with pytest.raises(StorageError, match="is not a readable log"):
        Journal(tmp_path)
