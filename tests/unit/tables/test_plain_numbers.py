"""Numbers of a long CSV file are read as such, and are what their texts say; texts that say more are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from nonempty import nonempty

from vflens.errors import DataError
from vflens.tables.cells import TableFile
from vflens.tables.description import PartyFile
from vflens.tables.own_check.profile import ColumnProfile, profile
from vflens.tables.written.plain_numbers import PlainNumbers

ROWS, BLOCK = 600, 1 << 10  # a file of some 12 blocks
#: A row in the middle, and what becomes of the three columns from there on: numbers or text.
ODD = {
    "plain": ("r,1.5,2,3", "nnn"),
    "quoted": ('"r","1.5",2,"3"', "nnn"),
    "missing": ("r,,NA,nan", "nnn"),
    "blanks": ("r, 1.5,2\t, 3 ", "nnn"),
    "zeros of an id": ("007,1,2,3", "nnn"),
    "zeros": ("r,1.5,007,3", "ntn"),
    "quoted zeros": ('r,1.5,2,"03"', "nnt"),
    "zero with an exponent": ("r,0e1,2,3", "tnn"),
    "zero and a blank": ("r,1,0 ,3", "ntn"),
    "word": ("r,1.5,?,3", "ntn"),
    "infinite": ("r,inf,2,3", "tnn"),
    "not a number": ("r, NaN ,2,3", "tnn"),
    "rounded": ("r,1.5,2,9007199254740993", "nnt"),
    "too large": ("r,1e999,2,3", "tnn"),
    "mark within quotes": ('r,"1,5",2,3', "tnn"),
    "mark and zeros": ('"r,",1.5,02,3', "ttt"),
    "lines within quotes": ('"r\n1",1.5,2,3', "ttt"),
    "doubled quotes": ('"r""1",1.5,2,3', "ttt"),
    "quote within": ('r"1,1.5,2,3', "ttt"),
    "blank line": ("\nr,1.5,2,3", "nnn"),
}


def _written(tmp_path: Path, row: str, end: str = "\n", start: str = "id,a,b,c\n") -> Path:
    rows = [f"r{i},{i * 0.37 % 1:.4f},{i % 9},{i * i % 1009 / 7}" for i in range(ROWS)]
    rows[ROWS // 2] = row
    (tmp_path / "own.csv").write_bytes((start + end.join(rows) + end).encode())
    return tmp_path / "own.csv"


def _found(file: Path, monkeypatch: pytest.MonkeyPatch, *, long: bool) -> tuple[list[Any], dict[str, str]]:
    """What each column holds, and whether its first cells came as numbers or texts."""
    kinds, add = dict[str, str](), ColumnProfile.add

    def noting(self: ColumnProfile, cells: pa.Array, first: int) -> object:
        kinds.setdefault(self.name, "n" if pa.types.is_floating(cells.type) else "t")
        return add(self, cells, first)

    monkeypatch.setattr(TableFile, "is_long", property(lambda self: long))
    monkeypatch.setattr(ColumnProfile, "add", noting)
    monkeypatch.setattr("vflens.tables.own_check.shelf.PART_ROWS", 1)
    found = profile(PartyFile(file=file), ("a", "b", "c"), TableFile(file, BLOCK))
    monkeypatch.undo()
    counts = [(c.rows, c.missing, c.texts, c.first_text, c.leading_zeros, c.rounded) for c in found.columns]
    cells = [(c.infinite(), c.numbers().tobytes(), c.different().to_pylist()) for c in found.columns]
    return [found.rows, found.lost, found.repeated_ids, counts, cells], kinds


@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lines", "returns"])
def test_numbers_are_what_their_texts_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str, end: str
) -> None:
    file = _written(tmp_path, ODD[case][0], end)
    assert _found(file, monkeypatch, long=True)[0] == _found(file, monkeypatch, long=False)[0]


@pytest.mark.parametrize("case", ODD)
def test_only_columns_whose_texts_tell_more_are_texts(tmp_path: Path, case: str) -> None:
    cells, kinds = TableFile(_written(tmp_path, ODD[case][0]), BLOCK), dict[str, str]()
    for block in cells.blocks(cells.names, plain=("a", "b", "c")):
        kinds = {name: "n" if pa.types.is_floating(part.type) else "t" for name, part in block.items()}
    assert "".join(kinds[name] for name in "abc") == ODD[case][1]


@pytest.mark.parametrize("start", ["id,a,b,c\n", "\ufeffid,a,b,c\n", '"id","a","b","c"\r\n', "a,b,c\n"])
@pytest.mark.parametrize("cut", [0, 1])
def test_the_first_and_the_last_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: str, cut: int
) -> None:
    file = _written(tmp_path, "r,1,2,3", start=start)
    file.write_bytes(file.read_bytes()[: -cut or None])
    texts = TableFile(file, BLOCK)
    numbers = list(TableFile(file, BLOCK).blocks(texts.names, plain=texts.names[1:]))
    for name in nonempty(texts.names[1:]):
        found = pa.concat_arrays([block[name] for block in numbers])
        assert found == pa.concat_arrays([b[name] for b in texts.blocks([name])]).cast(pa.float64())


@pytest.mark.parametrize("block", range(60, 75))
def test_a_zero_at_the_start_of_any_block_is_seen(tmp_path: Path, block: int) -> None:
    (tmp_path / "own.csv").write_text("a,b\n" + "01,2\n" * 40)
    cells = TableFile(tmp_path / "own.csv", block)
    kinds = [part["a"].type for part in cells.blocks(["a"], plain=["a"])]
    assert set(kinds) == {pa.string()}


def test_a_row_of_too_many_cells_is_refused_in_the_same_words(tmp_path: Path) -> None:
    refusals = []
    for plain in ((), ("a", "b", "c")):
        with pytest.raises(DataError) as caught:
            list(TableFile(_written(tmp_path, "r,1,2,3,4"), BLOCK).blocks(["a", "b"], plain=plain))
        refusals.append(str(caught.value))
    assert refusals[0] == refusals[1]


def test_few_blocks_are_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, plain = list[int](), PlainNumbers._read

    def noting(self: PlainNumbers, raw: bytes, *how: Any) -> pa.Table:
        read.append(len(raw))
        return plain(self, raw, *how)

    monkeypatch.setattr(PlainNumbers, "_read", noting)
    cells = TableFile(_written(tmp_path, "r,?,02,3"), BLOCK)
    blocks = len(list(cells.blocks(["a", "b", "c"], plain=("a", "b", "c"))))
    assert len(read) == blocks + 3
