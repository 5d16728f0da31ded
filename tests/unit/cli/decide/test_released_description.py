"""A release reads a description as an audit does: how the file is written, and what its cells may be."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from commandline import Run

PLAN = "[release]\nlambda = 1e16\n"  # noise of 1e-4


def _rows(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


def _released(folder: Path, vflens: Run, text: str, description: str, *flags: str) -> Path:
    (folder / "own.csv").write_bytes(text.encode("cp1252"))
    (folder / "own.toml").write_text(f'file = "own.csv"\n{description}{PLAN}')
    ended = vflens(
        "release", folder / "own.toml", *flags, "--seed", "s", "--out", folder / "r.csv", "--force"
    )
    assert ended.code == 0, ended.err
    return folder / "r.csv"


def test_the_file_is_read_as_it_is_described(tmp_path: Path, vflens: Run) -> None:
    plain = "\n".join(["id,size,fare", *(f"{i},{i % 7},{2 * i}" for i in range(40)), ""])
    for text, more in (
        (plain.split("\n", 1)[1], 'header = false\nid_column = "column 1"\n'),
        (plain.replace(",", ";"), 'delimiter = ";"\n'),
        (plain.replace("size", "größe"), 'encoding = "cp1252"\n'),
    ):
        names, *found = _rows(_released(tmp_path, vflens, text, more))
        np.testing.assert_allclose(np.array(found, float), [(i % 7, 2 * i) for i in range(40)], atol=0.01)
    assert names == ["größe", "fare"]
    gaps = plain.replace("\n3,3,", "\n3,-9,")
    assert len(_rows(_released(tmp_path, vflens, gaps, 'empty.size = ["-9"]\nmissing = "drop_row"\n'))) == 40


def test_declared_categories_are_those_of_the_release(tmp_path: Path, vflens: Run) -> None:
    text = "\n".join(["id,kind,size", *(f"{i},{'ab'[i % 2]},{i % 9}" for i in range(40)), ""])
    declared = 'encode.kind = "one_hot"\ncategories.kind = ["b", "c", "a"]\n'
    header = _rows(_released(tmp_path, vflens, text, declared))[0]
    assert header == ["kind=b", "kind=c", "kind=a", "size"]
    facts = json.loads((tmp_path / "r.csv.certificate.json").read_text())
    assert not [words for words in facts["not_protected"] if "categories occur" in words]
    found = _released(tmp_path, vflens, text, 'encode.kind = "one_hot"\n')
    assert _rows(found)[0] == ["kind=a", "kind=b", "size"]
    facts = json.loads((tmp_path / "r.csv.certificate.json").read_text())
    assert "which categories occur in kind" in facts["not_protected"]
    ordinal = declared.replace("one_hot", "ordinal")
    _released(tmp_path, vflens, text, ordinal)
    facts = json.loads((tmp_path / "r.csv.certificate.json").read_text())
    assert facts["encodings"]["kind"]["categories"] == ["b", "c", "a"]
    assert "encodings.kind.categories" not in facts["private"]


HOT = 'encode.kind = "one_hot"\n'
UNDECLARED = {
    f'{HOT}categories.kind = ["a", "b"]\n': "data row 8: its categories.kind are a, b",
    'encode.kind = "one_hot:missing"\ncategories.kind = ["a", "b"]\n': "categories.kind are a, b, missing",
    f"{HOT}alphabets.size = [0, 1, 2, 3, 5]\n": "in data row 5 and 5 more that is not in its alphabet",
    f"{HOT}bounds.size = [0, 3]\n": "in data row 5 and 11 more outside its bounds [0.0, 3.0]",
    'label_column = "kind"\nclasses = ["a", "b"]\n': "holds another text in data row 8: its classes are a, b",
    'columns = ["sise"]\n': "column 'sise' is missing: the file has id, kind, size, did you mean size?",
    'columns = ["size"]\nalphabets.kind = [1, 2]\n': "alphabets.kind describes no feature",
}


@pytest.mark.parametrize("declared", UNDECLARED)
def test_what_is_not_as_declared_is_refused_as_an_audit_does(
    tmp_path: Path, vflens: Run, declared: str
) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{i},{'c' if i == 7 else 'ab'[rng.integers(2)]},{i % 6}" for i in range(40)]
    (tmp_path / "own.csv").write_text("\n".join(["id,kind,size", *rows, ""]))
    (tmp_path / "own.toml").write_text(f'file = "own.csv"\n{declared}{PLAN}')
    for command in ("release", "audit"):
        out = tmp_path / f"{command}.out.csv"
        ended = vflens(command, tmp_path / "own.toml", "--out", out)
        assert ended.code == 3, ended.out
        assert UNDECLARED[declared] in ended.err.replace("\n", " ")
        assert not out.exists()
