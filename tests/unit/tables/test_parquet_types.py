"""Every type of a parquet column is read rightly, or refused in words with a remedy that works."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from vflens.errors import DataError
from vflens.tables.description import PartyFile
from vflens.tables.files import check_party_table, column_profile, read_party_table
from vflens.tables.table import Table
from vflens.tables.written.kinds import as_plain

DAY = 86_400


def _file(folder: Path, cells: pa.Array) -> Path:
    """With an id, a number, and ``cells`` in column x."""
    rows = range(len(cells))
    data = {"id": [f"p{i}" for i in rows], "a": [float(i * i % 7) for i in rows], "x": cells}
    pq.write_table(pa.table(data), folder / "own.parquet")
    return folder / "own.parquet"


def _read(file: Path, kind: str | None, **settings: Any) -> Table:
    return read_party_table(PartyFile(file=file, encode={} if kind is None else {"x": kind}, **settings))


NUMBERS: dict[str, tuple[pa.Array, str | None, list[float]]] = {
    "nanoseconds are cut": (pa.array([1704067200_000000001, -1001, 0], pa.timestamp("ns")), "date",
        [19723.0, -1e-6 / DAY, 0.0]),
    "nanoseconds with a zone": (pa.array([1704067200_000000000] * 3, pa.timestamp("ns", "Asia/Tokyo")),
        "date", [19723.0] * 3),
    "seconds before 1970": (pa.array([-DAY, 0, DAY // 2], pa.timestamp("s")), "date", [-1.0, 0.0, 0.5]),
    "milliseconds": (pa.array([-DAY * 500, 0, DAY], pa.timestamp("ms")), "date", [-0.5, 0.0, 0.001]),
    "microseconds": (pa.array([-1, 0, DAY], pa.timestamp("us", "UTC")), "date", [-1e-6 / DAY, 0.0, 1e-6]),
    "days": (pa.array([-1, 0, 19782], pa.date32()), "date", [-1.0, 0.0, 19782.0]),
    "days in milliseconds": (pa.array([-DAY * 1000, 0, 0], pa.date64()), "date", [-1.0, 0.0, 0.0]),
    "days as categories": (pa.array([1, 2, 1], pa.date32()).dictionary_encode(), "date", [1.0, 2.0, 1.0]),
    "durations in seconds": (pa.array([DAY, -DAY, 2 * DAY], pa.duration("s")), "number", [1.0, -1.0, 2.0]),
    "durations in nanoseconds": (pa.array([DAY * 10**9, 0, -DAY * 10**9], pa.duration("ns")), "number",
        [1.0, 0.0, -1.0]),
    "times of day": (pa.array([0, 6 * 3600, 12 * 3600], pa.time32("s")), "number", [0.0, 0.25, 0.5]),
    "times of day in nanoseconds": (pa.array([0, 6 * 3600 * 10**9, 0], pa.time64("ns")), "number",
        [0.0, 0.25, 0.0]),
    "decimals": (pa.array([1, -2, 3], pa.decimal128(20, 3)), None, [1.0, -2.0, 3.0]),
    "wide decimals": (pa.array([1, -2, 3], pa.decimal256(60, 3)), None, [1.0, -2.0, 3.0]),
    "half precision": (pa.array(np.array([0.5, -1.5, 2], np.float16)), None, [0.5, -1.5, 2.0]),
    "unsigned": (pa.array([2**63, 2**40, 0], pa.uint64()), None, [2.0**63, 2.0**40, 0.0]),
    "truth values": (pa.array([True, False, True]), None, [1.0, 0.0, 1.0]),
    "categories of numbers": (pa.array([4, 2, 4]).dictionary_encode(), None, [4.0, 2.0, 4.0]),
    "numbers as large strings": (pa.array(["4", " 2", "-1"], pa.large_string()), None, [4.0, 2.0, -1.0]),
    "numbers as views": (pa.array(["4", "2", "-1"], pa.string_view()), None, [4.0, 2.0, -1.0]),
    "numbers as bytes": (pa.array([b"4", b"2", b"-1"]), None, [4.0, 2.0, -1.0]),
    "ordinals of integers": (pa.array([10, 9, 10]), "ordinal", [1.0, 0.0, 1.0]),
    "ordinals of categories": (pa.array([10, 9, 10]).dictionary_encode(), "ordinal", [1.0, 0.0, 1.0]),
    "ordinals of text categories": (pa.array(["b", "a", "b"]).dictionary_encode(), "ordinal",
        [1.0, 0.0, 1.0]),
}  # fmt: skip


@pytest.mark.parametrize("case", NUMBERS)
def test_a_type_is_read(tmp_path: Path, case: str) -> None:
    cells, kind, numbers = NUMBERS[case]
    np.testing.assert_allclose(_read(_file(tmp_path, cells), kind).features[:, 1], numbers, rtol=1e-14)


@pytest.mark.parametrize("case", [c for c, (_, kind, _) in NUMBERS.items() if kind in ("date", "number")])
def test_times_are_named_with_the_kind_that_reads_them(tmp_path: Path, case: str) -> None:
    cells, kind, _ = NUMBERS[case]
    file = _file(tmp_path, cells)
    found = check_party_table(PartyFile(file=file))
    assert found is not None
    (remedy,) = (flaw.remedy for flaw in found.flaws if flaw.column == "x")
    assert remedy == f'encode.x = "{kind}"'
    for other in (None, *({"date", "number"} - {kind})):
        with pytest.raises(DataError, match=rf"column 'x' holds .*: encode it as '{kind}'$"):
            _read(file, other)


@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.duration("us"), pa.date32()])
def test_a_gap_in_times_is_missing(tmp_path: Path, kind: pa.DataType) -> None:
    cells = pa.array([None, 0], pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)
    how = "number" if kind == pa.duration("us") else "date"
    assert _read(_file(tmp_path, cells), how, missing="drop_row").features[:, 1].tolist() == [0.0]


NONE = {
    "lists": pa.array([[1], [2]]),
    "records": pa.array([{"q": 1}, {"q": 2}]),
    "maps": pa.array([[("q", 1)], []], pa.map_(pa.string(), pa.int64())),
    "bytes": pa.array([b"\xff\x01", b"a"]),
    "bytes of one length": pa.array([b"\xff", b"\xfe"], pa.binary(1)),
}


@pytest.mark.parametrize("case", NONE)
@pytest.mark.parametrize("kind", [None, "number", "date", "ordinal"])
def test_what_is_no_value_is_refused_without_its_cell(tmp_path: Path, case: str, kind: str | None) -> None:
    file = _file(tmp_path, NONE[case])
    with pytest.raises(DataError, match="column 'x' holds ") as refusal:
        _read(file, kind)
    assert "xff" not in str(refusal.value)
    found = check_party_table(PartyFile(file=file))
    assert found is not None
    assert [flaw.remedy for flaw in found.flaws if flaw.column == "x"] == ["leave x out of columns"]
    assert _read(file, None, columns=("a",)).features.shape == (2, 1)


@pytest.mark.parametrize("case", NONE)
def test_ids_and_labels_that_are_no_values_are_refused(tmp_path: Path, case: str) -> None:
    file = _file(tmp_path, NONE[case])
    for role in ({"id_column": "x", "columns": ("a",)}, {"label_column": "x"}):
        for use in (check_party_table, read_party_table):
            with pytest.raises(
                DataError, match=r"column 'x' holds .*, which is no text: write it as text or"
            ):
                use(PartyFile(file=file, **role))


TEXTS: Mapping[str, pa.Array] = {
    "categories": pa.array(["u", "v"]).dictionary_encode(),
    "large strings": pa.array(["u", "v"], pa.large_string()),
    "views": pa.array(["u", "v"], pa.string_view()),
    "bytes": pa.array([b"u", b"v"]),
    "bytes of one length": pa.array([b"u", b"v"], pa.binary(1)),
    "large bytes": pa.array([b"u", b"v"], pa.large_binary()),
}


@pytest.mark.parametrize("case", TEXTS)
def test_text_is_an_id_a_label_and_a_category_however_it_is_stored(tmp_path: Path, case: str) -> None:
    file = _file(tmp_path, TEXTS[case])
    spec = PartyFile(file=file, id_column="x", columns=("a",))
    assert read_party_table(spec).ids.tolist() == [b"u", b"v"]
    assert check_party_table(spec) is not None
    assert _read(file, None, label_column="x").class_names == ("u", "v")
    assert _read(file, "one_hot").features[:, 1:].tolist() == [[1, 0], [0, 1]]
    assert column_profile(PartyFile(file=file), "x").different().to_pylist() == ["u", "v"]


def test_a_uuid_is_its_text(tmp_path: Path) -> None:
    ids = [bytes([i]) * 16 for i in (3, 7)]
    file = _file(tmp_path, pa.array(ids, pa.uuid()))
    found = read_party_table(PartyFile(file=file, id_column="x", columns=("a",))).ids
    assert [UUID(i.decode()).bytes for i in found.tolist()] == ids


def test_runs_are_spelt_out() -> None:
    assert as_plain(pc.run_end_encode(pa.array(["a", "a", None]))).to_pylist() == ["a", "a", None]


def test_a_column_without_values_is_a_gap_of_any_kind(tmp_path: Path) -> None:
    file = _file(tmp_path, pa.nulls(3))
    for kind in (None, "number", "date"):
        with pytest.raises(DataError, match="column 'x' misses the value of data row 1 and 2 more"):
            _read(file, kind)
