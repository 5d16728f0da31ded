"""What the texts of a table took is given back before its numbers are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from vflens.tables import reading
from vflens.tables.description import PartyFile
from vflens.tables.files import read_party_table


class Pool:
    """Notes when memory is given back."""

    def __init__(self, steps: list[str]) -> None:
        self._steps = steps

    def release_unused(self) -> None:
        self._steps.append("released")


def test_texts_are_released_before_the_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, steps = tmp_path / "own.csv", list[str]()
    file.write_text("id,a\nx,1\ny,2\n")

    def noting(name: str) -> Any:
        plain = getattr(reading, name)

        def noted(*given: Any) -> Any:
            steps.append(name)
            return plain(*given)

        return noted

    for name in ("_ids", "features_of"):
        monkeypatch.setattr(reading, name, noting(name))
    monkeypatch.setattr(pa, "default_memory_pool", lambda: Pool(steps))
    assert read_party_table(PartyFile(file=file, id_column="id")).features.tolist() == [[1.0], [2.0]]
    assert steps == ["_ids", "released", "features_of", "released"]
