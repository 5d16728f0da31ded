"""Files of others whose few bytes would take gigabytes: each is refused in words before it is read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from runfolder import SCHEMA, metric, write_run

from vflens.errors import DataError, ProtocolError
from vflens.experiments.pages.report import render
from vflens.experiments.results.folders import read_party
from vflens.experiments.results.record import read_runs
from vflens.protos import vfl_pb2 as pb
from vflens.storage.metrics import Metrics, Name, metric_rows
from vflens.storage.regular import MOST_TEXT, MOST_TOML, read_bytes, read_text
from vflens.wire.agreements.party_info import decode_party


def _metrics(file: Path, rows: int, **changed: Any) -> Path:
    """``rows`` equal rows, which take a few kilobytes; ``changed`` are the cells of some columns."""
    cells = metric("mse", 0.5) | changed
    columns = {field.name: _repeated(cells[field.name], field.type, rows) for field in SCHEMA}
    pq.write_table(pa.table(columns), file, compression="zstd")
    assert file.stat().st_size < 1 << 20
    return file


def _repeated(cell: Any, kind: pa.DataType, rows: int) -> pa.Array:
    if kind == pa.list_(pa.float64()):
        ends = np.arange(rows + 1, dtype=np.int32) * len(cell)
        return pa.ListArray.from_arrays(ends, np.zeros(ends[-1]))
    return pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), pa.array([cell], kind))


@pytest.mark.parametrize(
    ("rows", "changed", "problem"),
    [
        ((1 << 19) + 1, {}, "it announces 524,289 rows, metrics have at most 524,288"),
        (9000, {"values": [0.0] * 1000}, "it announces 9,000,000 figures of columns"),
        (2000, {"attack": "x" * 200_000}, "attack has texts of 200,000 characters in 2,000 rows"),
    ],
)
def test_metrics_that_unpack_to_gigabytes_are_refused(
    tmp_path: Path, rows: int, changed: dict[str, Any], problem: str
) -> None:
    write_run(tmp_path / "run")
    _metrics(tmp_path / "run/passive/metrics.parquet", rows, **changed)
    with pytest.raises(DataError, match=problem):
        read_party(tmp_path / "run/passive")


@pytest.mark.parametrize(
    "table",
    [
        {"value": [0.5]},
        {"metric": [1]},
        {"metric": ["a"], "values": [["b"]]},
        {"metric": pa.array([b"abc"], pa.binary(3))},
        {"metric": pa.array([None], pa.null())},
    ],
)
def test_other_tables_are_no_metrics(tmp_path: Path, table: dict[str, Any]) -> None:
    write_run(tmp_path / "run")
    pq.write_table(pa.table(table), tmp_path / "run/passive/metrics.parquet")
    with pytest.raises(DataError, match="cannot be read as metrics"):
        read_party(tmp_path / "run/passive")


def test_limits_leave_the_figures_of_a_run_as_they_are(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path / "metrics.parquet")
    metrics.add(Name.MSE, 0.5, attack="lmmse", step=3)
    metrics.add_columns(Name.COLUMN_MSE, np.array([0.25, 0.5]), attack="lmmse")
    metrics.save()
    assert metric_rows(tmp_path / "metrics.parquet", limited=True) == metric_rows(
        tmp_path / "metrics.parquet"
    )


@pytest.mark.parametrize(
    ("name", "most"),
    [("federation.json", MOST_TEXT), ("status.json", MOST_TEXT), ("config.toml", MOST_TOML)],
)
def test_a_sparse_file_is_refused_by_its_size(tmp_path: Path, name: str, most: int) -> None:
    write_run(tmp_path / "run")
    os.truncate(tmp_path / "run/passive" / name, 3 << 30)
    with pytest.raises(DataError, match=f"it has 3,221,225,472 bytes, more than {most:,}"):
        read_party(tmp_path / "run/passive")


def test_a_file_of_the_largest_size_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    assert (read_bytes(tmp_path / "file", 3), read_text(tmp_path / "file")) == (b"abc", "abc")
    with pytest.raises(OSError, match="it has 3 bytes, more than 2"):
        read_bytes(tmp_path / "file", 2)


FAR: dict[str, list[list[int]]] = {
    "far apart": [[0, 0], [4095, 4095]],
    "in three directions": [[0, 0, 0], [900, 900, 900]],
    "too large a number": [[0, 0], [0, 4096]],
    "beyond an integer": [[10**30, 0], [10**30, 1]],
    "negative": [[-1, 0], [0, 0]],
}
WORDS = "pixels lie in a box of|is none: number them from 0 to 4095"


@pytest.mark.parametrize("far", FAR)
def test_no_picture_of_pixels_that_lie_far_apart_is_drawn(tmp_path: Path, far: str) -> None:
    run = write_run(tmp_path / "run")
    for party in ("passive", "active", "coordinator"):
        file = run / party / "federation.json"
        facts = json.loads(file.read_text())
        columns = facts["parties"][2]["columns"]
        for column, place in zip(columns, [*FAR[far], *FAR[far]], strict=True):
            column["pixel"] = place
        file.write_text(json.dumps(facts))
    with pytest.raises(DataError, match=WORDS):
        render(read_runs([run]))


@pytest.mark.parametrize("far", ["far apart", "in three directions"])
def test_a_peer_may_not_announce_pixels_that_lie_far_apart(far: str) -> None:
    columns = [pb.Column(name=f"c{i}", pixel=place) for i, place in enumerate(FAR[far])]
    with pytest.raises(ProtocolError, match=WORDS):
        decode_party(pb.PartyInfo(name="a", role="passive", columns=columns))


@pytest.mark.parametrize("places", [[[0, 0], [255, 255]], [[7, 9]], [[0, 0, 0], [27, 27, 2]]])
def test_a_few_pixels_of_an_ordinary_image_are_drawn(places: list[list[int]]) -> None:
    columns = [pb.Column(name=f"c{i}", pixel=place) for i, place in enumerate(places)]
    assert len(decode_party(pb.PartyInfo(name="a", role="passive", columns=columns)).columns) == len(places)
