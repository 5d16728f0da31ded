"""``vflens audit``: its flags for columns of text."""

from __future__ import annotations

from pathlib import Path

import pytest
from commandline import Refused, Run, strict


@pytest.mark.parametrize("flag", ["date", "=date", ""])
def test_a_kind_names_its_column(refused: Refused, flag: str) -> None:
    sentence = refused(2, "audit", "x.csv", "--encode", flag)
    assert sentence == f"--encode {flag!r}: give COLUMN=KIND, such as job=one_hot or opened=date"


@pytest.mark.usefixtures("few_defences")
def test_columns_of_text_are_audited(tmp_path: Path, vflens: Run) -> None:
    rows = [f'{i},"€ {i * 97 % 13},000",0{i % 7 + 1}/02/2024,{"ab"[i % 2]}\n' for i in range(80)]
    (tmp_path / "own.csv").write_text("id,income,opened,kind\n" + "".join(rows))
    encode = [f"--encode={kind}" for kind in ("income=number", "opened=date:%d/%m/%Y", "kind=one-hot")]
    few = ["--models", 1, "--known", 10, "--rows", 40, "--out", tmp_path, "--json"]
    ended = vflens("audit", tmp_path / "own.csv", "--classes", 2, *encode, *few)
    assert ended.code == 0, ended.err
    assert strict(ended.out)["columns"] == ["income", "opened", "kind=a", "kind=b"]
