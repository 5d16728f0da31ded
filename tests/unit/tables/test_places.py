"""Refusals of rows: data rows counted from 1, no identifier and no cell: ``--show-ids`` prints them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commandline import Run
from hypothesis import given
from hypothesis import strategies as st

from vflens.errors import DataError
from vflens.tables.description import PartyFile
from vflens.tables.files import read_party_table
from vflens.tables.places import Places, repeats_earlier
from vflens.tables.table import DroppedRows

MANY = "".join(f"person-{i},{i}\n" for i in range(7)) + "person-3,1\nperson-5,2\nperson-3,4\n"


@pytest.mark.parametrize(
    ("text", "settings", "message", "shown"),
    [
        (MANY, {}, "id of an earlier row in data row 8 and 2 more",
         ("'person-3'", "'person-5'", "'person-3'")),
        ("person-1,1\nperson-2,\n", {}, "misses the value of data row 2: fill", ("'person-2'",)),
        ("person-1,\nperson-2,9\nperson-3,0\n", {"missing": "drop_row", "alphabets": {"x": [0]}},
         "holds a number in data row 2 that is not in its alphabet", ("'person-2': 9.0",)),
        ("person-1,person-1\n", {}, "holds no number in data row 1: set encode.x", ()),
        ("person-1,u\nperson-2,v\n", {"encode": {"x": "ordinal"}, "categories": {"x": ["u"]}},
         "another text in data row 2: its categories.x are u", ("'person-2': v",)),
        ("person-1,1\nperson-2,person-9,3\n", {}, " has 3 cells", ()),
        ("person-1,9007199254740993\n", {}, "an integer in data row 1 that float64 rounds",
         ("9007199254740993 becomes 9007199254740992",)),
    ],
)  # fmt: skip
def test_rows_are_numbered_as_in_the_file_and_not_named(
    tmp_path: Path, text: str, settings: dict[str, Any], message: str, shown: tuple[str, ...]
) -> None:
    (tmp_path / "data.csv").write_text(f"id,x\n{text}")
    with pytest.raises(DataError, match=message) as refusal:
        read_party_table(PartyFile.model_validate({"file": "data.csv", **settings}), tmp_path)
    assert "person" not in str(refusal.value)
    assert "9" not in str(refusal.value).removeprefix(str(tmp_path))
    assert refusal.value.shown == shown


def test_a_long_column_names_the_row_of_its_first_text(tmp_path: Path) -> None:
    rows = [f"{i},{'abc' if i in (70_001, 90_000) else i}\n" for i in range(1, 100_000)]
    (tmp_path / "data.csv").write_text("id,x\n" + "".join(rows))
    with pytest.raises(DataError, match="column 'x' holds no number in data row 70001 and 1 more: "):
        read_party_table(PartyFile(file=tmp_path / "data.csv"))


@given(st.lists(st.sampled_from(["a", "b", "cc", "ddd"])))
def test_repetitions_are_those_of_a_loop(ids: list[str]) -> None:
    repeated = [name in ids[:i] for i, name in enumerate(ids)]
    assert repeats_earlier(np.array([i.encode() for i in ids], "S3")).tolist() == repeated


def test_the_first_twenty_identifiers_are_kept() -> None:
    places = Places.of(np.array([str(i).encode() for i in range(100)]))
    refusal = places.kept(np.arange(100) >= 50).refusal(np.full(50, True), "in", ": mend it")
    assert str(refusal) == "in data row 51 and 49 more: mend it"
    assert refusal.shown == tuple(repr(str(i)) for i in range(50, 70))


def test_identifiers_are_printed_to_who_asks(tmp_path: Path, vflens: Run) -> None:
    (tmp_path / "data.csv").write_text(f"id,x\n{MANY}")
    asked = ("audit", tmp_path / "data.csv", "--classes", 2, "--out", tmp_path)
    unasked = vflens(*asked).err
    assert ("person" in unasked, unasked.endswith("(--show-ids prints which)\n")) == (False, True)
    assert vflens(*asked, "--show-ids").err.endswith("('person-3', 'person-5', 'person-3')\n")


def test_dropped_rows_are_counted_by_column(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("id,x,job\na,1,\nb,,\nc,3,u\nd,,u\n")
    spec = {"file": "data.csv", "missing": "drop_row", "encode": {"job": "one_hot"}}
    table = read_party_table(PartyFile.model_validate(spec), tmp_path)
    assert table.dropped == DroppedRows(rows=4, lost=3, gaps={"x": 2, "job": 2})
    spec["missing"] = "refuse"
    (tmp_path / "data.csv").write_text("id,x,job\na,1,v\n")
    assert read_party_table(PartyFile.model_validate(spec), tmp_path).dropped is None
