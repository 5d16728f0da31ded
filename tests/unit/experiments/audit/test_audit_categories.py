"""A column of categories is one column of an audit: right where its largest estimate is the true category."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from audits import audit_record, outcome

from vflens.defenses.label_only import LabelOnly
from vflens.experiments.audit import defenses as module
from vflens.experiments.audit.bench import Answer, Bench, Plan
from vflens.experiments.audit.charts import columns_table
from vflens.experiments.audit.outcomes import ModelErrors, Paths, by_column, shares, summary, wrong_of
from vflens.experiments.audit.run import audit, tolerance_of
from vflens.experiments.audit.subject import AuditSubject, of_table
from vflens.experiments.audit.words import in_short, sentences
from vflens.experiments.evidence.sources import of_audit
from vflens.experiments.outcome.decide import State
from vflens.experiments.outcome.finding import Finding, Quantity
from vflens.experiments.outcome.words import column, title
from vflens.numerics.measures.rarity import VARYING
from vflens.tables.description import PartyFile
from vflens.tables.files import read_party_table
from vflens.types import Array, ColumnInfo

PLAN = Plan(models=2, known=20, rows=120, seed=1, training="secure")
HOT = ("education=a", "education=b", "education=c")


def _silent(stage: str, done: int, total: int) -> None: ...


@pytest.fixture(autouse=True)
def one_defence(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them take seconds."""
    monkeypatch.setattr(module, "candidates", lambda: iter([("label_only", {}, LabelOnly)]))


def _subject(category: Array, **changes: Any) -> AuditSubject:
    """A number between the one-hot columns of ``category`` int (n,): they need not be neighbours."""
    income = np.random.default_rng(3).random(len(category))
    hot = np.equal(category[:, None], np.arange(3)).astype(float)
    x = np.column_stack([hot[:, :2], income, hot[:, 2]])
    names = (*HOT[:2], "income", HOT[2])
    columns = tuple(ColumnInfo(n, 0.0, 1.0, alphabet=None if n == "income" else (0.0, 1.0)) for n in names)
    return AuditSubject("mine", columns, x, 2, one_hot=dict.fromkeys(HOT, "education"), **changes)


def _education(estimated: Array, category: Array, learnt: Array | None = None) -> tuple[Any, Any]:
    """The outcome and the finding of an attack that gives each row the ``estimated`` (n, 3) columns."""
    subject = _subject(category)
    values = np.column_stack([estimated[:, :2], np.full(len(category), 0.5), estimated[:, 2]])
    answer = Answer("made_up", np.arange(len(category), dtype=np.int32), values)
    guesses = {} if learnt is None else {"imputation": learnt}
    errors = ModelErrors.of(subject, answer, guesses, tolerance_of(Bench.set_up(subject, Plan(known=0))))
    by_it = summary("made_up", "random", [errors], subject)
    (found,) = [f for f in by_column([by_it], subject) if f.subject == "education"]
    return by_it, found


CATEGORY = np.resize([0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2], 120)  # half of them 0, in both halves alike


def _with_wrong(wrong: int) -> Array:
    """Estimates whose largest is the true category, by little, but in the ``wrong`` first rows."""
    estimated = np.full((120, 3), 0.1)
    named = np.where(np.arange(120) < wrong, (CATEGORY + 1) % 3, CATEGORY)
    estimated[np.arange(120), named] = 0.3
    return estimated


def test_the_largest_estimate_decides_beside_the_most_frequent_category() -> None:
    """All estimates are nearer to 0: column by column no 1 is found, and the category is in 4 rows of 5."""
    by_it, found = _education(_with_wrong(24), CATEGORY)
    assert (found.value, found.blind) == (pytest.approx(0.8), pytest.approx(0.5))
    assert by_it.categories == {"education": (pytest.approx(0.8), pytest.approx(0.5))}
    assert by_it.right[0] == pytest.approx(0.5)  # by column, as before
    assert (by_it.column, by_it.leak) == ("education", pytest.approx(1 - 0.2 / 0.5))
    assert found.share == pytest.approx(by_it.leak)
    assert found.state is State.FOUND
    assert column(found) == "education right in 80 % of rows, a blind guess right in 50 % of rows"
    assert title(found).endswith(" finds education in 80 % of rows; a guess in 50 %.")


def test_answers_beyond_the_box_still_have_a_largest_one() -> None:
    beyond = _with_wrong(0) * 40  # 4 and 12: both would be clipped to 1
    assert _education(beyond, CATEGORY)[1].value == 1.0


def test_imputation_of_a_category_is_a_blind_guess() -> None:
    """An attack that names 8 of 10 categories is no better than one that names 9."""
    imputed = _with_wrong(12)
    learnt = np.column_stack([imputed[:, :2], np.full(120, 0.5), imputed[:, 2]])
    by_it, found = _education(_with_wrong(24), CATEGORY, learnt)
    assert found.blind == pytest.approx(0.9)
    assert found.state is not State.FOUND
    assert by_it.leak < 0.1


def test_a_model_leaks_the_wrong_ones_of_a_category_once() -> None:
    """Whatever attack and defence: the same figure, of two whole columns and not of four."""
    subject = _subject(CATEGORY)
    answer = Answer("made_up", np.arange(120, dtype=np.int32), subject.x * 0.9)
    taken = shares(*wrong_of(subject, answer, {}))
    assert taken.shape == (2,)
    assert taken[0] == 1.0  # education: every category is named
    assert 0.9 < taken[1] < 1.0


@pytest.mark.parametrize(
    ("category", "varies", "deciding"),
    [
        (np.arange(3000) % 1000, True, 51),
        (np.where(np.arange(120) < VARYING - 1, 1, 0), False, 667),
        (np.zeros(120, int), False, 0),
    ],
    ids=["a thousand alike", "hardly another", "always one"],
)
def test_a_category_varies_where_enough_rows_have_another(
    category: Array, varies: bool, deciding: int
) -> None:
    """Each of a thousand categories is rare, and no two rows in a row share one."""
    names = [f"c={i}" for i in range(category.max() + 1)]
    x = np.equal(category[:, None], np.arange(len(names))).astype(float)
    columns = tuple(ColumnInfo(n, 0.0, 1.0, alphabet=(0.0, 1.0)) for n in names)
    subject = AuditSubject("mine", columns, x, 2, one_hot=dict.fromkeys(names, "c"))
    assert [name for name, _ in subject.whole] == ["c"]
    assert subject.varies == [varies]
    assert subject.deciding == [deciding]


def _file(tmp_path: Path) -> PartyFile:
    rng = np.random.default_rng(0)
    rows = [
        f"p{i},{rng.choice(list('aabc'))},{rng.choice(['J', 'N'])},{rng.random():.3f},{rng.integers(2)},only"
        for i in range(200)
    ]
    file = tmp_path / "mine.csv"
    file.write_text("\n".join(["id,education,consent,education=z,x=1,one", *rows]) + "\n")
    encode = {"education": "one_hot", "consent": "one_hot", "one": "one_hot"}
    return PartyFile(file=file, id_column="id", encode=encode)


def test_the_description_says_which_columns_are_one(tmp_path: Path) -> None:
    """Names with "=" alone say nothing, and two values make one column."""
    table = read_party_table(_file(tmp_path))
    subject = of_table("mine", table, 2)
    assert [c.name for c in subject.columns] == [
        *(*HOT, "consent=J", "consent=N", "education=z", "x=1", "one=only"),
    ]
    assert subject.whole == [
        ("education", [0, 1, 2]),
        *[("consent", [3, 4]), ("education=z", [5]), ("x=1", [6]), ("one", [7])],
    ]
    assert of_table("mine", table.take([6, 2, 1, 0]), 2).whole == [("x=1", [0]), ("education", [1, 2, 3])]
    np.testing.assert_array_equal(subject.whole_x[:, 1], table.features[:, 4])


def test_a_whole_audit_counts_columns_of_the_file(tmp_path: Path) -> None:
    """Its arrays stay by column, and so do thresholds."""
    record = audit(of_table("mine", read_party_table(_file(tmp_path)), 3), PLAN, _silent)
    named = ["consent", "education", "education=z", "one", "x=1"]
    assert sorted(own["column"] for own in record.own_units) == named
    assert sorted(f.subject for f in record.by_column) == named
    assert record.categories == {
        "education": HOT,
        "consent": ("consent=J", "consent=N"),
        "one": ("one=only",),
    }
    assert all(len(a.columns) == len(a.found) == 8 for a in record.attacks)
    assert set(HOT) <= set(of_audit(record).columns) == set(record.columns)
    header, *rows = columns_table(record)
    assert sorted(row[0] for row in rows) == named
    assert {row[header.index("H(X), bits")] for row in rows if row[0] in record.categories} == {"–"}
    (worst,) = [row for row in rows if row[0] == "one"]
    assert worst[1] == "it never varies"
    assert " of 5 columns found" in sentences(record)[2]
    assert record.worst_model.column in named
    assert all(d.column in ("", *named) for d in record.defenses)
    assert json.loads(json.dumps(record.json))["attacks"][0]["categories"].keys() == {"education", "consent"}
    assert any("of 5 columns" in line for line in in_short(record))


def test_a_sample_of_the_table_keeps_its_whole_columns(tmp_path: Path) -> None:
    subject = of_table("mine", read_party_table(_file(tmp_path)), 2)
    bench = Bench.set_up(subject, PLAN)
    assert bench.subject.whole == subject.whole
    assert bench.subject.deciding == subject.deciding


def test_a_width_of_a_category_is_none() -> None:
    figures: Any = {"value": 0.8, "low": 0.7, "high": 0.9, "blind": 0.5}
    place: Any = {"attack": "pra", "target": "mine", "scored_set": "predict", "rows": 100}
    paths = Paths(widths=(0.5,) * 4, right_branches=1.0, determined=1.0, unfinished=0.0)
    record = audit_record(
        outcome("pra", 0.01, 4, released="score", paths=paths),
        **{"weights": "m.ubj", "columns": (*HOT, "income"), "categories": {"education": HOT}},
        units=(1.0, 1.0, 1.0, 10.0),
        by_column=tuple(
            Finding(quantity=Quantity.RIGHT, subject=name, **place, **figures)
            for name in ("education", "income")
        ),
    )
    _, education, income = columns_table(record)
    assert (education[-1], income[-1]) == ("–", "5.0")
