"""The check of a long file holds the numbers of few columns, and of parquet reads most columns once."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vflens.errors import StorageError
from vflens.experiments.audit.bench import Plan
from vflens.experiments.audit.subject import FEWEST_ROWS
from vflens.experiments.run import own_tables
from vflens.experiments.run.check import check
from vflens.experiments.run.own_tables import describe, few_rows
from vflens.tables import cells
from vflens.tables.description import PartyFile
from vflens.tables.files import check_party_table
from vflens.tables.own_check import writer
from vflens.tables.own_check.profile import ColumnProfile
from vflens.tables.own_check.relations import Sketch, relations
from vflens.tables.own_check.shelf import Shelf, a_shelf, joined
from vflens.types import Array

ROWS, COLUMNS = 400, 12


@pytest.fixture
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    found = pd.DataFrame({f"c{j}": rng.normal(size=ROWS) for j in range(COLUMNS)})
    found.insert(0, "id", [f"r{i}" for i in range(ROWS)])
    return found


def _stored(table: pd.DataFrame, file: Path) -> Path:
    pq.write_table(pa.Table.from_pandas(table, preserve_index=False), file)
    return file


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many columns held numbers whenever one of them took some up; a file is read column by column."""
    holding, found = set[str](), list[int]()
    add, forget, put = ColumnProfile.add, ColumnProfile.forget, Shelf.put

    def adds(self: ColumnProfile, values: pa.Array, first: int) -> object:
        holding.add(self.name)
        found.append(len(holding))
        return add(self, values, first)

    def forgets(self: ColumnProfile) -> None:
        holding.discard(self.name)
        forget(self)

    def puts(self: Shelf, name: str, numbers: Array) -> None:
        holding.discard(name)
        put(self, name, numbers)

    monkeypatch.setattr(ColumnProfile, "add", adds)
    monkeypatch.setattr(Shelf, "put", puts)
    monkeypatch.setattr(ColumnProfile, "forget", forgets)
    monkeypatch.setattr(cells, "_CELLS", ROWS)
    return found


def test_numbers_of_one_column_are_held(table: pd.DataFrame, tmp_path: Path, held: list[int]) -> None:
    describe(_stored(table, tmp_path / "own.parquet"), None)
    assert held == [1] * COLUMNS


@pytest.mark.parametrize("write", [False, True], ids=["check", "write"])
def test_few_columns_of_a_long_csv_file_are_held(
    table: pd.DataFrame, tmp_path: Path, held: list[int], monkeypatch: pytest.MonkeyPatch, write: bool
) -> None:
    file = tmp_path / "own.csv"
    table.to_csv(file, index=False)
    spec = PartyFile(file=file, id_column="id")
    whole = check_party_table(spec)
    assert max(held) == COLUMNS
    monkeypatch.setattr(cells, "_CSV_CELLS", 3 * ROWS)
    held.clear()
    if write:
        describe(file, tmp_path / "own.toml")
    else:
        assert check_party_table(spec) == whole
    assert len(held) == COLUMNS
    assert max(held) < 5


def test_many_small_blocks_become_few_arrays() -> None:
    column, rng = ColumnProfile("a", None, categorical=False, keeps_gaps=False), np.random.default_rng(0)
    blocks = [rng.normal(size=300) for _ in range(1000)]
    for i, block in enumerate(blocks):
        column.add(pa.array(block), 300 * i)
    assert len(column._numbers) < 100
    assert (column.numbers() == np.concatenate(blocks)).all()


def test_a_column_of_numbers_is_read_once(
    table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.loc[3, "c5"] = np.nan
    file, read, plain = _stored(table, tmp_path / "own.parquet"), list[str](), cells.TableFile.blocks

    def noting(self: cells.TableFile, names: list[str], **how: Any) -> object:
        read.extend(names)
        return plain(self, names, **how)

    monkeypatch.setattr(cells.TableFile, "blocks", noting)
    describe(file, tmp_path / "own.toml")
    assert {name: read.count(name) for name in ("c4", "c6")} == {"c4": 1, "c6": 1}
    assert read.count("c5") > 1
    read.clear()
    facts = check(tmp_path / "own.toml")
    assert (facts["rows"], facts["columns"], read.count("c4")) == (ROWS, COLUMNS, 1)


@pytest.mark.parametrize("csv_cells", [1 << 24, 3 * ROWS], ids=["CSV together", "CSV three by three"])
@pytest.mark.parametrize("at_once", [1 << 24, 3 * ROWS], ids=["together", "three by three"])
def test_words_are_those_of_a_csv_file(
    table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int, csv_cells: int
) -> None:
    monkeypatch.setattr(cells, "_CSV_CELLS", csv_cells)
    table["sum"] = table["c1"] + 2 * table["c7"]
    table["gap"] = table["c2"].where(np.arange(ROWS) % 9 > 0)
    table["word"] = np.where(np.arange(ROWS) % 3 > 0, "red", "blue")
    table["code"] = np.where(np.arange(ROWS) % 40 > 0, np.arange(ROWS) % 31 * 1.0, -999.0)
    table = pd.concat([table, table.iloc[:5].assign(id=[f"again{i}" for i in range(5)])])
    monkeypatch.setattr(writer, "_CELLS", at_once)
    table.to_csv(tmp_path / "own.csv", index=False)
    words = [describe(f, None) for f in (tmp_path / "own.csv", _stored(table, tmp_path / "own.parquet"))]
    csv, parquet = ({k: v for k, v in found.items() if k != "lines"} for found in words)
    assert csv == parquet
    for word in ("sum is nearly a function of c1, c7", "repeat an earlier row in 5 of 405", "gap"):
        assert any(word in line for line in words[1]["decide"]), words[1]["decide"]


def test_numbers_of_a_long_csv_file_are_read_in_one_pass(
    table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table["word"] = np.where(np.arange(ROWS) % 3 > 0, "red", "blue")
    table["late"] = ["1"] * (ROWS - 1) + ["?"]
    file, read, plain = tmp_path / "own.csv", list[list[str]](), cells.TableFile.blocks
    table.to_csv(file, index=False)
    spec = PartyFile(file=file, id_column="id")
    whole = check_party_table(spec)

    def noting(self: cells.TableFile, names: list[str], **how: Any) -> object:
        read.append(list(names))
        return plain(self, names, **how)

    monkeypatch.setattr(cells, "_CSV_CELLS", 3 * ROWS)
    monkeypatch.setattr(cells.TableFile, "blocks", noting)
    assert check_party_table(spec) == whole
    assert read[:2] == [list(table.columns), ["word", "late"]]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize(("first", "zeros"), [(0, 3), (1, 2), (4, 2), (5, 1), (8, 0)])
def test_leading_zeros_are_counted_in_any_part_of_an_array(kind: pa.DataType, first: int, zeros: int) -> None:
    column = ColumnProfile("a", None, categorical=False, keeps_gaps=False)
    column.add(pa.array(["01", "0", None, "0.5", "007", "10", "00", "0", "5"], kind)[first:], 0)
    assert column.leading_zeros == zeros


def test_no_space_for_numbers_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda: open("/dev/full", "r+b", buffering=0))  # noqa: SIM115, PTH123  # the code closes it
    with pytest.raises(StorageError, match="set TMPDIR to a folder with more"), a_shelf() as shelf:
        shelf.put("a", np.zeros(3))


@pytest.mark.facts
def test_long_texts_are_not_held_for_many_rows() -> None:
    """Numbers are joined all the same; notes of 20 KB in 16,384 rows would take 330 MB."""
    note, number = pa.array(["x" * 20_000] * 20), pa.array(["1.5"] * 20)
    chunks = ((20 * i, name, cells) for i in range(900) for name, cells in (("note", note), ("n", number)))
    found = list(joined(chunks))
    assert max(cells.nbytes for *_, cells in found) < 2 << 20
    assert [len(cells) for _, name, cells in found if name == "n"] == [16_400, 1_600]
    starts = [first for first, name, _ in found if name == "note"]
    assert starts == list(range(0, 18_000, starts[1]))


def test_ids_of_a_whole_table_are_read_once(
    table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, plain = list[str](), cells.TableFile.blocks

    def noting(self: cells.TableFile, names: list[str], **how: Any) -> object:
        read.extend(names)
        return plain(self, names, **how)

    monkeypatch.setattr(cells.TableFile, "blocks", noting)
    describe(_stored(table, tmp_path / "own.parquet"), None)
    assert sorted(read) == sorted(table.columns)


@pytest.mark.parametrize("repeated", [0, 5])
def test_combinations_of_columns_end_where_no_rows_are_equal(
    table: pd.DataFrame, tmp_path: Path, repeated: int
) -> None:
    codes = table[["id"]].assign(**{f"k{j}": np.arange(ROWS) // 10 ** (1 + j) % 10 for j in range(5)})
    both = pd.concat([codes, table.drop(columns="id")], axis=1)
    both = pd.concat([both, both[:repeated].assign(id=[f"again{i}" for i in range(repeated)])])
    sketch = Sketch()
    check_party_table(PartyFile(file=_stored(both, tmp_path / "own.parquet"), id_column="id"), see=sketch.see)
    found = [flaw.sentence for flaw in relations(sketch, list(sketch.some)) if flaw.kind == "repeated rows"]
    assert (
        found
        == [f"all columns repeat an earlier row in {repeated} of {ROWS + repeated} rows (1.2 %)"][:repeated]
    )
    assert sketch.alike == bool(repeated)


def test_rows_that_need_no_plan_are_enough_for_one() -> None:
    assert max(Plan.known + 2, FEWEST_ROWS) <= own_tables._MANY
    assert few_rows(own_tables._MANY - 1) == few_rows(own_tables._MANY) == ""
    assert few_rows(Plan.known + 1) > ""
