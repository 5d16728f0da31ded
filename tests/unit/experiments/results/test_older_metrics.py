"""Files of metrics without details, and with a row for each cell of a matrix, are read as today's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from runfolder import SCHEMA, metric, write_party

from vflens.errors import DataError
from vflens.experiments.results.folders import read_party
from vflens.storage.metrics import Metrics, Name

WHERE: dict[str, Any] = {"attack": "ls", "target": "passive", "scored_set": "predict", "rows": 50}
B = np.array([[2.0, 0.1, 0.3], [0.1, 3.0, 0.7], [0.3, 0.7, 5.0]])
DETAILED = {
    Name.SKIPPED: "no moments",
    Name.FAILED: "ValueError: a bug",
    Name.GRANTED: "embedding, gradient",
    Name.THEORY_MEASURED: "RVG Theorem 2",
    Name.MEMBERSHIP_TPR: "0.01",
    Name.HIJACK_SCORE: "split_guard",
    Name.HIJACK_ALARM: "split_guard",
}


def _older(folder: Path, rows: list[dict[str, Any]]) -> Path:
    write_party(folder, "passive")
    schema = SCHEMA.remove(SCHEMA.get_field_index("detail"))
    pq.write_table(pa.Table.from_pylist(rows, schema), folder / "metrics.parquet")
    return folder


def _rows() -> list[dict[str, Any]]:
    cells = zip(*np.triu_indices(3), strict=True)
    return [
        metric("column_mse", 0.25, column="age", **WHERE),
        *(metric(name, 1.0, column=text, **WHERE) for name, text in DETAILED.items()),
        *(metric("score_noise", B[i, j], column=f"{i},{j}", rows=7) for i, j in cells),
        metric("score_noise", 9.0, column="0,0", rows=8),
        metric("column_mse", 0.5, values=[0.25, 0.75], **WHERE),
    ]


def test_an_older_file_is_read_as_todays(tmp_path: Path) -> None:
    today = Metrics(tmp_path / "today" / "metrics.parquet")
    today.add(Name.COLUMN_MSE, 0.25, column="age", **WHERE)
    for name, text in DETAILED.items():
        today.add(name, 1.0, detail=text, **WHERE)
    today.add_columns(Name.COLUMN_MSE, np.array([0.25, 0.75]), **WHERE)
    today.add_matrix(Name.SCORE_NOISE, B, rows=7)
    today.add_matrix(Name.SCORE_NOISE, np.array([[9.0]]), rows=8)
    (tmp_path / "today").mkdir()
    today.save()
    assert read_party(_older(tmp_path / "older", _rows())).metrics == read_party(tmp_path / "today").metrics


def test_a_party_goes_on_with_an_older_file(tmp_path: Path) -> None:
    folder = _older(tmp_path / "passive", _rows())
    before = read_party(folder).metrics
    again = Metrics(folder / "metrics.parquet")
    again.add(Name.SKIPPED, 1.0, detail="no moments", **WHERE)  # known: it takes the place of the first
    again.save()
    assert read_party(folder).metrics == before
    assert "detail" in pq.read_schema(folder / "metrics.parquet").names


def test_a_matrix_comes_back_to_the_bit(tmp_path: Path) -> None:
    found = [m for m in read_party(_older(tmp_path / "passive", _rows())).metrics if m.name == "score_noise"]
    assert [m.rows for m in found] == [7, 8]
    np.testing.assert_array_equal(found[0].matrix, B)


@pytest.mark.parametrize("cell", ["", "1", "1,2,3", "a,b"])
def test_a_cell_without_a_place_is_refused_in_one_sentence(tmp_path: Path, cell: str) -> None:
    words = (
        rf"cannot be read as metrics \(column: 'i,j' of a cell of score_noise is due \(got '{cell}'\)\): copy"
    )
    with pytest.raises(DataError, match=words):
        read_party(_older(tmp_path / "passive", [metric("score_noise", 1.0, column=cell)]))


@pytest.mark.parametrize("values", [[], [1.0, 2.0]])
def test_a_matrix_of_another_length_is_refused_in_one_sentence(tmp_path: Path, values: list[float]) -> None:
    write_party(tmp_path / "passive", "passive", metrics=[metric("score_noise", 1.0, values=values)])
    (found,) = read_party(tmp_path / "passive").metrics
    with pytest.raises(DataError, match=r"score_noise has no matrix .*: copy metrics.parquet anew$"):
        _ = found.matrix
