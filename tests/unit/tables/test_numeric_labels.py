"""A label that is a number: read with bounds, scaled by them, refused with row and remedy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tablefiles import read

from vflens.errors import ConfigError, DataError

NUMBER: dict[str, Any] = {"label_column": "y", "label_kind": "number", "bounds": {"y": [-10.0, 30.0]}}


def test_it_is_in_the_unit_of_the_file_and_a_target_in_its_bounds(tmp_path: Path) -> None:
    table = read(tmp_path, "id,x,y\na,1,-10\nb,2, 0\nc,3,1e1\nd,4,30.0\n", **NUMBER)
    assert table.labels is not None
    assert table.targets is not None
    assert table.labels.tolist() == [-10, 0, 10, 30]
    assert table.targets.tolist() == [0, 0.25, 0.5, 1]
    assert (table.class_names, table.n_classes) == ((), 1)
    assert [c.name for c in table.columns] == ["x"]
    other = read(tmp_path, "id,x,y\na,1,-10\nb,2,1\nc,3,10\nd,4,30\n", **NUMBER)
    assert not np.array_equal(other.digest(), table.digest())


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("much", "label_column 'y' holds no number in data row 2: correct it, set encode.y = 'number' for"),
        ("1;2", "label_column 'y' holds no number in data row 2"),
        ("inf", "label_column 'y' holds no number in data row 2"),
        ("", "label_column 'y' is empty in data row 2: label it or drop it"),
        ("NaN", "label_column 'y' is empty in data row 2"),
        (
            "30.001",
            "label_column 'y' holds a number in data row 2 outside its bounds [-10.0, 30.0]: correct the one "
            "or the other",
        ),
        ("-11", "label_column 'y' holds a number in data row 2 outside its bounds [-10.0, 30.0]"),
        ("1e999", "label_column 'y' holds a number in data row 2 outside its bounds [-10.0, 30.0]"),
    ],
)
def test_a_cell_that_is_none_is_refused(tmp_path: Path, cell: str, words: str) -> None:
    with pytest.raises(DataError, match=re.escape(words)):
        read(tmp_path, f"id,x,y\na,1,0\nb,2,{cell}\n", **NUMBER)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"label_column": None},
            "label_kind = 'number' without label_column: name the column that holds the numbers",
        ),
        ({"classes": ["a", "b"]}, "classes beside label_kind = 'number': a number has none"),
        ({"bounds": {}}, "bounds.y is missing: label_kind = 'number' needs the [low, high] of the label"),
        ({"bounds": {"y": [1.0, 1.0]}}, "bounds.y = [1.0, 1.0]: the first must be below the second"),
    ],
)
def test_a_description_that_lacks_something_is_refused(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        read(tmp_path, "id,x,y\na,1,0\n", **{**NUMBER, **changes})


def test_bounds_of_classes_are_refused(tmp_path: Path) -> None:
    settings = {**NUMBER, "label_kind": "classes"}
    with pytest.raises(DataError, match=r"bounds\.y describes no feature: these are x"):
        read(tmp_path, "id,x,y\na,1,0\nb,2,1\n", **settings)


def test_images_have_classes(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match="label_kind = 'number': a folder of images has classes, leave it out"
    ):
        read(tmp_path, "", **{**NUMBER, "file": "."})
