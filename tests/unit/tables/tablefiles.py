"""Tables read from files, and tables that are to be equal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from vflens.config import validate
from vflens.tables.description import PartyFile
from vflens.tables.files import read_party_table
from vflens.tables.table import Table


def assert_same(a: Table, b: Table) -> None:
    """Bit by bit: −0.0 is not 0.0."""
    assert a.ids.tolist() == b.ids.tolist()
    assert a.columns == b.columns
    assert a.features.dtype == b.features.dtype
    assert a.features.shape == b.features.shape
    assert a.features.tobytes() == b.features.tobytes()
    assert a.class_names == b.class_names
    assert (a.label is None) == (b.label is None)
    if a.label is not None and b.label is not None:
        assert (a.label.low, a.label.high) == (b.label.low, b.label.high)
    for x, y in ((a.labels, b.labels), (a.split, b.split)):
        assert (x is None and y is None) or (
            x is not None and y is not None and x.dtype == y.dtype and x.tolist() == y.tolist()
        )


def spec(**settings: Any) -> PartyFile:
    return validate(TypeAdapter(PartyFile), {"file": "data.csv", **settings}, "data")


def read(folder: Path, text: str, **settings: Any) -> Table:
    (folder / "data.csv").write_text(text, encoding="utf-8")
    return read_party_table(spec(**settings), folder)
