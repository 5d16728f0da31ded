"""A party with a numeric label to begin with, and rows without one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from commandline import Refused, Run, refused, vflens

from vflens.config import read_toml
from vflens.tables.description import PartyFile
from vflens.tables.files import read_party_table

_FIXTURES = (refused, vflens)  # used by name
BEGIN = (
    *("party", "init", "active", "--run", "prices", "--at", "127.0.0.1:50051"),
    *("--peer", "coordinator=127.0.0.1:50052", "--peer", "passive=127.0.0.1:50053", "--table", "own.csv"),
)


def test_a_numeric_label_is_begun_with_its_bounds(vflens: Run, refused: Refused, tmp_path: Path) -> None:
    file, label = tmp_path / "active.toml", ("--label-column", "price")
    assert vflens(*BEGIN, *label, "--label-bounds", "0,400", "--out", file).code == 0
    data = read_toml(file)["data"]
    assert (data["label_kind"], data["bounds"]) == ("number", {"price": [0.0, 400.0]})
    elsewhere = ("--out", tmp_path / "b.toml")
    assert "give the least and largest number" in refused(
        2, *BEGIN, *label, "--label-bounds", "x", *elsewhere
    )
    assert "without --label-column" in refused(2, *BEGIN, "--label-bounds", "0,1", *elsewhere)
    assert "must be below" in refused(2, *BEGIN, *label, "--label-bounds", "4,1", *elsewhere)


@pytest.mark.parametrize("kind", [{"label_kind": "number", "bounds": {"y": [0, 9]}}, {}])
def test_rows_without_a_label_are_dropped_where_it_is_said(tmp_path: Path, kind: dict[str, Any]) -> None:
    (tmp_path / "own.csv").write_text("id,x,y\na,1,1\nb,2,\nc,,3\nd,4,5\n", encoding="utf-8")
    spec = {"file": tmp_path / "own.csv", "label_column": "y", "missing": "drop_row", **kind}
    table = read_party_table(PartyFile.model_validate(spec))
    assert table.ids.tolist() == [b"a", b"d"]
    assert table.dropped is not None
    assert (table.dropped.lost, table.dropped.gaps) == (2, {"x": 1, "y": 1})
