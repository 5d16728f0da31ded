"""Whatever stands in the files of a run folder, reading it gives a result, a finding or a numbered refusal.

A change keeps what a damaged file has not: JSON that is JSON, npz that is npz, an index whose lines are valid
and whose offsets lie. ``VFLENS_FOLDERS=2000`` tries so many changes of each file.
"""

from __future__ import annotations

import json
import os
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import horizontal
import numpy as np
import pyarrow.parquet as pq
import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from laboratory import close, federation

from vflens.errors import VflensError
from vflens.experiments.offline.attack import attack_recorded
from vflens.experiments.pages.report import render
from vflens.experiments.results.record import read_runs
from vflens.experiments.verify_log.verify import verify_logs

EXAMPLES = int(os.environ.get("VFLENS_FOLDERS", "9"))
LOGS = ("chain.bin", "digests.bin", "payload.bin")
FILES = (
    *LOGS, "index.jsonl", "federation.json", "status.json", "heads.json", "state.json", "config.toml",
    "metrics.parquet", "own.npz", "rows.npz", "events.jsonl", "blinded.json",
)  # fmt: skip
ATTACKS = {"vertical": ("active", "half_star", None), "horizontal": ("server", "half", "a")}
CLIENTS = {"a": horizontal.table(30, 1), "b": horizontal.table(17, 2)}
#: What may stand in a field instead.
ODD = st.sampled_from(
    [None, True, 0, 1, -1, 2, 7, 10**30, 1e308, 0.5, "", "x", "predict", "active", "a/b", "0" * 64]
) | st.recursive(
    st.integers(-3, 99) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
ARRAYS = st.sampled_from(
    [
        np.zeros(shape, kind)
        for shape in ((), (0,), (3,), (2, 3), (0, 4), (1, 1, 1))
        for kind in ("i4", "f8", "U3", "?")
    ]
    + [np.full((4, 4), np.nan), np.full(4, np.inf), np.array([2**31 - 1, -5], np.int32)]
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A finished run of each setting; every example restores what it changed."""
    made = {
        "vertical": tmp_path_factory.mktemp("v") / "run",
        "horizontal": tmp_path_factory.mktemp("h") / "run",
    }
    federation(made["vertical"], align={"mode": "psi"}).run()
    settings_: dict[str, Any] = {
        "horizontal": {"rounds": 3},
        "training": {"batch_size": 8, "learning_rate": 0.1},
    }
    local = horizontal.federation(
        horizontal.deal(made["horizontal"], CLIENTS, attacks=[{"name": "half"}], disclose=(), **settings_)
    )
    local.run()
    close(local)
    return made


@pytest.mark.parametrize("name", FILES)
def test_a_changed_file_is_read_refused_or_found(runs: dict[str, Path], name: str) -> None:
    @given(st.data())
    @settings(
        max_examples=EXAMPLES if name in LOGS else EXAMPLES // 3,  # a page costs as much as ten audits
        derandomize="VFLENS_FOLDERS" not in os.environ,
        suppress_health_check=list(HealthCheck),
    )
    def one(data: st.DataObject) -> None:
        kind = data.draw(st.sampled_from([k for k in sorted(runs) if any(runs[k].glob(f"*/**/{name}"))]))
        file = data.draw(st.sampled_from(sorted(runs[kind].glob(f"*/**/{name}"))))
        before = file.read_bytes()
        try:
            file.write_bytes(_changed_file(data, before, file))
            _read(runs[kind], kind, name)
        finally:
            file.write_bytes(before)

    one()


def _read(home: Path, kind: str, name: str) -> None:
    """Read as ``vflens verify-log``, ``attack`` and, what a page shows, ``report`` do."""
    party, attack, target = ATTACKS[kind]
    with suppress(VflensError):
        verify_logs([home])
    with suppress(VflensError):
        attack_recorded(home / party, attack, target, home.parent / "estimate.npz")
    if name not in LOGS:
        with suppress(VflensError):
            render(read_runs([home]))


def _json(data: st.DataObject, before: bytes, file: Path) -> bytes:
    document = json.loads(before)
    for _ in range(data.draw(st.integers(1, 2))):
        document = _changed(data, document)
    return json.dumps(document).encode()


def _changed(data: st.DataObject, value: Any) -> Any:
    """``value`` with one place below it changed."""
    if not value or not isinstance(value, dict | list) or data.draw(st.integers(0, 5)) == 0:
        return data.draw(ODD)
    key = data.draw(st.sampled_from(sorted(value) if isinstance(value, dict) else list(range(len(value)))))
    how = data.draw(st.sampled_from(["below", "below", "below", "gone", "odd"]))
    changed = value.copy()
    if how == "gone":
        del changed[key]
    else:
        changed[key] = _changed(data, value[key]) if how == "below" else data.draw(ODD)
    return changed


def _toml(data: st.DataObject, before: bytes, file: Path) -> bytes:
    try:
        return tomli_w.dumps(_changed(data, tomllib.loads(before.decode()))).encode()
    except (TypeError, AttributeError):  # TOML has no null
        return before


def _lines(data: st.DataObject, before: bytes, file: Path) -> bytes:
    """An index whose lines are JSON: changed, exchanged, repeated or gone."""
    lines = before.splitlines(keepends=True)
    if not lines:
        return before
    place = data.draw(st.integers(0, len(lines) - 1))
    how = data.draw(st.sampled_from(["field", "field", "array", "array", "twice", "gone", "torn", "swapped"]))
    if how == "twice":
        lines.insert(place, lines[place])
    elif how == "gone":
        del lines[place]
    elif how == "swapped":
        lines[place], lines[0] = lines[0], lines[place]
    elif how == "torn":
        lines[place] = lines[place][: data.draw(st.integers(0, 40))]
    else:
        entry = json.loads(lines[place])
        if how == "field" or not isinstance(entry.get("rows"), dict):
            entry = _changed(data, entry)
        else:
            array = data.draw(st.sampled_from([entry["rows"], *entry.get("tensors", [])]))
            numbers = st.sampled_from([0, 1, 3, 4, 5, 60, 10**6, 2**31, 2**62])
            array |= data.draw(
                st.sampled_from(
                    [
                        {"offset": data.draw(numbers)},
                        {"shape": data.draw(st.lists(numbers, max_size=3))},
                        {"dtype": data.draw(st.sampled_from(["<f8", "<f4", "<i4", "<i8", "|u1", "|b1"]))},
                    ]
                )
            )
        lines[place] = json.dumps(entry).encode() + b"\n"
    return b"".join(lines)


def _arrays(data: st.DataObject, before: bytes, file: Path) -> bytes:
    with np.load(file) as saved:
        arrays: dict[str, Any] = dict(saved)
    name = data.draw(st.sampled_from(sorted(arrays)))
    if data.draw(st.booleans()):
        arrays[name] = data.draw(ARRAYS)
    elif data.draw(st.booleans()):
        del arrays[name]
    else:
        arrays[data.draw(st.text("ab:/", min_size=1, max_size=4))] = (
            arrays[name][:1] if arrays[name].ndim else arrays[name]
        )
    np.savez(file, **arrays)
    return file.read_bytes()


def _table(data: st.DataObject, before: bytes, file: Path) -> bytes:
    table = pq.read_table(file)
    name = data.draw(st.sampled_from(table.column_names))
    column = table.column_names.index(name)
    if data.draw(st.booleans()):
        table = table.drop([name])
    else:
        table = table.set_column(
            column,
            name,
            [[data.draw(st.sampled_from([-1.5, float("nan"), float("inf"), 10**6]))] * len(table)],
        )
    pq.write_table(table, file)
    return file.read_bytes()


def _bytes(data: st.DataObject, before: bytes, file: Path) -> bytes:
    """Bits, an end cut off, bytes put in."""
    changed = bytearray(before)
    place = data.draw(st.integers(0, max(0, len(changed) - 1)))
    how = data.draw(st.sampled_from(["bit", "cut", "more", "zero"]))
    if how == "bit" and changed:
        changed[place] ^= 1 << data.draw(st.integers(0, 7))
    elif how == "cut":
        del changed[place:]
    elif how == "more":
        changed[place:place] = data.draw(st.binary(min_size=1, max_size=70))
    else:
        changed[place : place + 8] = bytes(8)
    return bytes(changed)


_CHANGES = {".json": _json, ".toml": _toml, ".jsonl": _lines, ".npz": _arrays, ".parquet": _table}


def _changed_file(data: st.DataObject, before: bytes, file: Path) -> bytes:
    """Changed as the file's kind allows, or as bytes."""
    change = _CHANGES.get(file.suffix, _bytes) if data.draw(st.integers(0, 4)) else _bytes
    return change(data, before, file)
