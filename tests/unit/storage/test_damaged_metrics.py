"""A damaged metrics file is refused with an error that readers of folders expect, and its party in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vflens.errors import StorageError
from vflens.storage.metrics import Metrics, Name, metric_rows


def _written(folder: Path) -> pa.Table:
    """The table of a file with a figure of nine rows and one of three columns."""
    metrics = Metrics(folder / "metrics.parquet")
    metrics.add(Name.MSE, 0.5, attack="ls", target="passive", scored_set="predict", rows=9)
    metrics.add_columns(Name.COLUMN_MSE, np.ones(3), attack="ls")
    metrics.save()
    return pq.read_table(folder / "metrics.parquet")


def _fails_as(file: Path) -> type[BaseException] | None:
    """What Arrow raises for ``file``."""
    try:
        pq.ParquetFile(file, read_dictionary=["attack"]).read(use_threads=False).to_pylist()
    except Exception as error:
        return type(error)
    return None


def test_a_word_that_its_dictionary_lacks_is_an_error_of_value(tmp_path: Path) -> None:
    file = tmp_path / "metrics.parquet"
    pq.write_table(_written(tmp_path), file, compression="none")
    whole, odd = file.read_bytes(), []
    for place in range(4, whole.index(b"metric")):  # the pages; what describes them follows
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 8]) + whole[place + 1 :])
        if not issubclass(_fails_as(file) or ValueError, OSError | ValueError):
            odd.append(place)
            with pytest.raises(ValueError, match=r"."):
                metric_rows(file, limited=True)
    assert odd, "no change led to an error that is no ValueError"


@pytest.mark.parametrize(
    "name", ["metric", "value", "attack", "adversary", "target", "scored_set", "column", "rows", "step"]
)
def test_a_party_refuses_its_file_without_a_column(tmp_path: Path, name: str) -> None:
    pq.write_table(_written(tmp_path).drop([name]), tmp_path / "metrics.parquet")
    with pytest.raises(StorageError, match=rf"no readable metrics file \(it lacks '{name}'\): move it away$"):
        Metrics(tmp_path / "metrics.parquet")


@pytest.mark.parametrize(
    ("name", "cells", "problem"),
    [
        ("metric", [None, None], "metric is missing in a row"),
        ("target", [["a"], ["b"]], "target: give string (got list<element: string>)"),
        ("value", ["x", "y"], "value: give double (got string)"),
        ("rows", [1.5, 2.0], "rows: give int64 (got double)"),
        ("values", ["x", "y"], "values: give list<item: double> (got string)"),
        ("values", [[None], [1.0]], "values is missing in a row"),
    ],
)
def test_a_party_refuses_its_file_with_a_column_of_another_kind(
    tmp_path: Path, name: str, cells: list[Any], problem: str
) -> None:
    table = _written(tmp_path)
    kind = pa.string() if cells == [None, None] else None
    table = table.set_column(table.column_names.index(name), name, pa.array(cells, kind))
    pq.write_table(table, tmp_path / "metrics.parquet")
    with pytest.raises(StorageError) as refused:
        Metrics(tmp_path / "metrics.parquet")
    words = f"{tmp_path}/metrics.parquet is no readable metrics file ({problem}): move it away"
    assert str(refused.value) == words
