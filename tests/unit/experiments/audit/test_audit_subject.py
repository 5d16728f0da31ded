"""What an audit is of: a party's file, a description of one, a run folder or a data set; its refusals say
what to do.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vflens.errors import ConfigError, DataError, VflensError
from vflens.experiments.audit.bench import Plan
from vflens.experiments.audit.given import Source, joint
from vflens.experiments.audit.subject import AuditSubject, load_subject
from vflens.experiments.weights.trees import TreeModel, TreeTraining

EXAMPLES = Path(__file__).parents[4] / "examples"


def _load(source: str | Path, **given: Any) -> AuditSubject:
    return load_subject(str(source), **{"classes": None, "columns": None, "id_column": "id", **given})


def test_sources(tmp_path: Path) -> None:
    mine = _load(EXAMPLES / "bank_passive.csv", classes=2, columns=["age", "income"])
    assert [c.name for c in mine.columns] == ["age", "income"]
    assert mine.x.min() == 0.0
    assert mine.x.max() == 1.0
    keys = f'file = "{EXAMPLES / "bank_passive.csv"}"\n[bounds]\nage = [0, 200]\n[encode]\njob = "one_hot"\n'
    (tmp_path / "mine.toml").write_text(keys)
    described = _load(tmp_path / "mine.toml", classes=2)
    assert described.x[:, 0].max() < 0.5  # by its bounds
    assert described.columns[-1].alphabet == (0.0, 1.0)
    party = _load(EXAMPLES / "passive.toml", classes=2)
    assert len(party.columns) > 1
    assert party.tolerance == {}
    assert party.ids is not None
    assert len(set(party.ids.tolist())) == len(party.x)
    wine = _load("wine")
    assert (len(wine.columns), wine.classes) == (7, 3)
    assert wine.other is not None
    assert wine.labels is not None
    pq.write_table(pa.table({"key": ["a", "b"], "v": [1.0, 2.0]}), tmp_path / "t.parquet")
    assert _load(tmp_path / "t.parquet", classes=2, id_column="key").x.tolist() == [[0.0], [1.0]]


def test_what_counts_as_found_is_what_the_configuration_says(tmp_path: Path) -> None:
    text = (EXAMPLES / "passive.toml").read_text()
    text = text.replace('"bank_passive.csv"', f'"{EXAMPLES / "bank_passive.csv"}"')
    begin, end = text.index("[data.bounds]"), text.index("[[disclose]]")  # each is of a column
    text = f'{text[:begin]}columns = ["age", "income", "credit_score"]\n{text[end:]}'
    (tmp_path / "p.toml").write_text(f"{text}\n[scoring.tolerance]\nage = 2\n")
    assert _load(tmp_path / "p.toml", classes=2).tolerance == {"age": 2.0}
    assert _load(tmp_path / "p.toml", classes=2, columns=["income"]).tolerance == {}
    asked = Source(str(tmp_path / "p.toml"), 2, ["age", "income"], "id", None)
    none = np.zeros(0, int)
    training = TreeTraining((), none, loss="logistic", base=None, weight=1.0, alone="", pruned=0)
    trees = TreeModel((), none, scores=1, width=2, names=("age", "income"), training=training)
    assert joint(asked, trees, Plan(known=0)).bench.subject.tolerance == {"age": 2.0}
    (tmp_path / "p.toml").write_text(f"{text}\n[scoring.tolerance]\nagee = 2\n")
    for columns in (None, ["income"]):
        with pytest.raises(ConfigError) as refused:
            _load(tmp_path / "p.toml", classes=2, columns=columns)
        assert str(refused.value) == (
            "scoring.tolerance.agee: no column of p.toml is called 'agee', did you mean age?"
        )


REFUSED: list[tuple[str, dict[str, Any], type[VflensError], str]] = [
    ("bank_passive.csv", {"columns": ["age"]}, ConfigError, "--classes is missing: how many classes"),
    ("bank_passive.csv", {"classes": 2}, DataError, "column 'job' holds no number in data row 1"),
    (
        "bank_passive.csv",
        {"classes": 100_000, "columns": ["age"]},
        ConfigError,
        r"--classes 100000: .* 2 to 1,000 classes, give fewer \(2 already determine your columns\)$",
    ),
    ("bank_passive.csv", {"classes": 2, "columns": ["salary"]}, DataError, "column 'salary' is missing"),
    (
        "bank_passive.csv",
        {"classes": 2, "id_column": "key"},
        DataError,
        "column 'key' is missing.*: name the one that .* with --id-column$",
    ),
    ("bank_passive.csv", {"classes": 2, "columns": ["id"]}, ConfigError, "'id' is named twice"),
    ("nothing.csv", {"classes": 2}, DataError, "there is no such file"),
    ("active.toml", {"classes": 2}, ConfigError, "configures the active party: an audit is a passive one's"),
    ("compose.toml", {"classes": 2}, ConfigError, "file: it is missing"),
    (".", {"classes": 2}, ConfigError, "configuration .* cannot be read"),
]


@pytest.mark.parametrize(("source", "given", "error", "sentence"), REFUSED)
def test_sources_that_do_not_fit_are_refused(
    source: str, given: dict[str, Any], error: type[VflensError], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        _load(EXAMPLES / source, **given)


def test_data_sets_know_their_classes_and_columns(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--classes 5: wine has 3, leave it out"):
        _load("wine", classes=5)
    with pytest.raises(ConfigError, match="--columns names 'grapes': wine has alcohol"):
        _load("wine", columns=["grapes"])
    with pytest.raises(ConfigError, match=r"'whine' is no file, run folder or data set: give a \.csv"):
        _load("whine")
    with pytest.raises(ConfigError, match="--columns with a run folder"):
        _load(tmp_path, columns=["a"])


def test_text_is_encoded_as_asked(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text('id,income,opened\n1,"€ 1,200",02/01/1970\n2,€ 7,01/01/1970\n')
    encode = {"income": "number", "opened": "date:%d/%m/%Y"}
    mine = _load(tmp_path / "mine.csv", classes=2, encode=encode)
    assert mine.bounds is not None
    assert mine.bounds.tolist() == [[7, 1200], [0, 1]]
    (tmp_path / "mine.toml").write_text(
        'file = "mine.csv"\nencode = {income = "number", opened = "ordinal"}\n'
    )
    assert (
        _load(tmp_path / "mine.toml", classes=2, encode={"opened": encode["opened"]}).x.tolist()
        == mine.x.tolist()
    )


def test_beside_a_trained_model_a_text_is_its_one_hot_columns(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("id,v,job\n1,3,cook\n2,4,nurse\n")
    asked = Source(str(tmp_path / "mine.csv"), 2, None, "id", inputs=None, encode={"job": "one_hot"})
    read = asked.read(["job", "v"])
    assert [c.name for c in read.columns] == ["job=cook", "job=nurse", "v"]
    assert read.features.tolist() == [[1, 0, 3], [0, 1, 4]]


def test_rows_with_gaps_become_what_is_asked(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("id,v\n1,0\n2,\n3,10\n4,2\n")
    with pytest.raises(DataError, match="misses the value of"):
        _load(tmp_path / "mine.csv", classes=2)
    assert _load(tmp_path / "mine.csv", classes=2, missing="drop_row").x.ravel().tolist() == [0, 1, 0.2]
    assert _load(tmp_path / "mine.csv", classes=2, missing="mean").x.ravel().tolist() == [0, 0.4, 1, 0.2]
    with pytest.raises(ConfigError, match="--missing with 'wine': it is no file of columns, leave it out"):
        _load("wine", missing="mean")


def test_only_a_table_is_encoded() -> None:
    with pytest.raises(ConfigError, match="--encode with 'wine': it is no file of columns, leave it out"):
        _load("wine", encode={"x": "date"})


@pytest.mark.parametrize("kind", ["one_hot", "ordinal"])
def test_a_label_may_be_a_column_that_the_check_described(tmp_path: Path, kind: str) -> None:
    rows = [f"r{i},{i % 7}.5,{'ab'[i % 2]}" for i in range(60)]
    (tmp_path / "own.csv").write_text("\n".join(["id,age,sick", *rows, ""]))
    described = f'file = "own.csv"\ncolumns = ["age", "sick"]\n[encode]\nsick = "{kind}"\n'
    (tmp_path / "own.toml").write_text(f'{described}[categories]\nsick = ["a", "b"]\n')
    found = _load(tmp_path / "own.toml", label="sick")
    assert ([c.name for c in found.columns], found.classes) == (["age"], 2)
    with pytest.raises(ConfigError, match="named twice"):
        _load(tmp_path / "own.toml", label="sick", columns=["age", "sick"])
