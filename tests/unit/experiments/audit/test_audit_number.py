"""An audit of a numeric label: its models, its verdict in R², and what is assumed of a label column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commandline import Refused, Run, refused, strict, vflens
from nonempty import nonempty
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score, root_mean_squared_error

from vflens.defenses.dp_gaussian import DPGaussian
from vflens.defenses.label_only import LabelOnly
from vflens.errors import ConfigError, DataError
from vflens.experiments.audit import defenses as module
from vflens.experiments.audit.bench import Bench, Plan
from vflens.experiments.audit.models import World, alone, simulate
from vflens.experiments.audit.record import AuditRecord
from vflens.experiments.audit.run import audit
from vflens.experiments.audit.subject import AuditSubject, load_subject
from vflens.experiments.audit.words import sentences, write_audit
from vflens.registry import ATTACKS

_FIXTURES = (refused, vflens)  # used by name
PLAN = Plan(models=2, known=20, rows=200, seed=2, training="secure")


def _load(source: str | Path, **given: Any) -> AuditSubject:
    return load_subject(str(source), **{"classes": None, "columns": None, "id_column": "id", **given})


def _silent(stage: str, done: int, total: int) -> None: ...


@pytest.fixture(scope="module")
def subject() -> AuditSubject:
    """Half of the columns of `diabetes`, and its label."""
    return _load("diabetes")


@pytest.fixture(scope="module")
def record(subject: AuditSubject) -> AuditRecord:
    """An audit with two defences, of which one acts on classes alone."""
    with pytest.MonkeyPatch.context() as patch:
        tried: list[Any] = [("label_only", {}, LabelOnly), ("dp_gaussian", {}, DPGaussian)]
        patch.setattr(module, "candidates", lambda: iter(tried))
        return audit(subject, PLAN, _silent)


def _world(subject: AuditSubject, kind: str = "trained") -> World:
    return simulate(subject, kind, np.random.default_rng(4))


def test_a_prediction_is_one_equation_of_the_party_s_columns(subject: AuditSubject) -> None:
    for kind in ("random", "trained"):
        world = _world(subject, kind)
        known = world.other @ world.own_weight.T + world.bias
        np.testing.assert_allclose(world.released - known, subject.x @ world.weight.T, atol=1e-12)
        np.testing.assert_array_equal(subject.system(world.weight), world.weight)
    one = _load("diabetes", columns=["bmi"])
    rows, none = np.arange(40, dtype=np.int32), np.zeros(0, np.int32)
    exact = _world(one).attack(ATTACKS.get("ls")(), rows, none, np.random.default_rng(0))
    np.testing.assert_allclose(exact.values, one.x[rows], atol=1e-9)


def test_a_trained_model_is_as_good_as_least_squares(subject: AuditSubject) -> None:
    """By scikit-learn's solution on the same rows, in the unit of the label: 25 to 346."""
    world = _world(subject)
    both, tested = np.hstack([subject.x, world.other]), world.tested
    best = LinearRegression().fit(both[world.trained], world.labels[world.trained])
    figures, truth = world.figures(world.released), world.labels[tested]
    assert figures["r2"] == pytest.approx(r2_score(truth, world.released[tested, 0]))
    assert figures["r2"] == pytest.approx(best.score(both[tested], truth), abs=0.03)
    in_unit = 321 * root_mean_squared_error(truth, world.released[tested, 0])
    assert figures["rmse"] == pytest.approx(in_unit)
    (scores,) = alone([world], [np.random.default_rng(1)])
    by_itself = LinearRegression().fit(world.other[world.trained], world.labels[world.trained])
    assert world.figures(scores)["r2"] == pytest.approx(by_itself.score(world.other[tested], truth), abs=0.03)


def test_a_number_that_nobody_has_is_drawn_and_mostly_explained() -> None:
    rng = np.random.default_rng(0)
    blind = _load("diabetes")
    drawn = simulate(AuditSubject("m", blind.columns, blind.x, 1, label=blind.label), "trained", rng)
    assert 0 <= drawn.labels.min() < 0.1
    assert 0.9 < drawn.labels.max() <= 1
    assert 0.6 < drawn.figures(drawn.released)["r2"] < 0.95  # four fifths, but for what is cut at the bounds


def test_the_verdict_is_in_r2_and_in_the_unit_of_the_label(record: AuditRecord, tmp_path: Path) -> None:
    assert record.theory_disagreements == []
    assert {a.attack for a in record.attacks if a.closed is not None} >= {"ls", "half_star"}
    tried: Any = record.defenses[0]  # label_only has no class to leave
    assert (tried.defense, tried.cost.measure) == ("dp_gaussian", "R²")
    assert (tried.accuracy_loss, tried.mean_kl) == (None, None)
    text = sentences(record)
    assert "A model of a number gives whoever knows its parameters 1 equation about your 5 columns" in text[4]
    assert text[6].startswith(
        "On rows that did not train them the planned models predict progression with an"
    )
    assert f"to within ± {record.utility['rmse'].mean:.0f} (root mean squared error, in its unit)." in text[6]
    write_audit(record, tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "each a linear regression of the planned size" in page
    assert "its cost in R²" in page


def test_the_cost_is_that_of_the_same_models_by_another_route(
    subject: AuditSubject, record: AuditRecord
) -> None:
    bench = Bench.set_up(subject, PLAN)
    lost = []
    for i in range(3):
        worlds = [
            simulate(bench.subject, "trained", PLAN.rng("trained", i), named)
            for named in ((), [("dp_gaussian", DPGaussian())])
        ]
        before, after = (r2_score(w.labels[w.tested], w.released[w.tested, 0]) for w in worlds)
        lost.append(before - after)
    cost: Any = record.defenses[0].cost
    np.testing.assert_allclose(cost.lost[:3], lost, atol=1e-12)


def test_the_folder_of_a_run_of_a_number_is_audited(tmp_path: Path) -> None:
    from laboratory import federation

    local = federation(
        tmp_path,
        data={"name": "diabetes", "sample": 90},
        split={"kind": "columns", "columns": {"passive": ["bmi", "bp"]}},
        model={"family": "linear_regression"},
        training={"epochs": 3},
        attacks=[],
        transcript={},
    )
    local.run()
    mine = _load(local.passive["passive"].folder)
    assert (mine.label and mine.label.name, mine.equations) == ("progression", 1)
    np.testing.assert_array_equal(mine.weight, local.passive["passive"].run.model.parameters()["weight"])


PRICES = [f"{20 + 3.5 * i:.2f}" for i in range(30)]


def _csv(folder: Path, labels: list[str], name: str = "price") -> Path:
    rng = np.random.default_rng(1)
    rows = [f"r{i},{rng.random():.4f},{rng.random():.4f},{label}" for i, label in enumerate(labels)]
    (folder / "own.csv").write_text("\n".join([f"id,a,b,{name}", *rows]) + "\n", encoding="utf-8")
    return folder / "own.csv"


def test_many_different_numbers_are_taken_as_a_number_and_it_is_said(tmp_path: Path) -> None:
    mine = _load(_csv(tmp_path, PRICES), label="price")
    assert mine.label is not None
    assert (mine.classes, [c.name for c in mine.columns]) == (1, ["a", "b"])
    assert (mine.label.low, mine.label.high) == (20.0, 121.5)
    assert mine.labels is not None
    np.testing.assert_allclose(20 + 101.5 * mine.labels, np.array(PRICES, float))
    assert mine.assumed.startswith(
        "price holds 30 different numbers and is taken as a number between its least and largest:"
    )
    text = _load(tmp_path / "own.csv", label="price", label_kind="number")
    assert (text.assumed, text.label) == ("", mine.label)
    classes = _load(tmp_path / "own.csv", label="price", label_kind="classes")
    assert (classes.assumed, classes.label, classes.classes) == ("", None, 30)


def test_few_different_numbers_and_texts_are_classes(tmp_path: Path) -> None:
    for labels in (["0", "1"] * 15, ["no", "yes"] * 15):
        mine = _load(_csv(tmp_path, labels), label="price")
        assert (mine.classes, mine.label, mine.assumed) == (2, None, "")
        assert mine.labels is not None
        assert mine.labels.tolist() == [0, 1] * 15
    few = _load(_csv(tmp_path, ["1", "2", "3"] * 10), label="price", label_kind="number")
    assert few.label is not None
    assert few.labels is not None
    assert sorted(set(few.labels.tolist())) == [0.0, 0.5, 1.0]


def test_marks_and_units_of_a_label_are_read(tmp_path: Path) -> None:
    own = _csv(tmp_path, [f"€ {p}" for p in PRICES])
    mine = _load(own, label="price", encode={"price": "number"})
    assert mine.label is not None
    assert (mine.label.low, mine.label.high) == (20.0, 121.5)
    table = f'file = "{own}"\nlabel_column = "price"\nlabel_kind = "number"\n'
    (tmp_path / "own.toml").write_text(
        f'{table}bounds.price = [0, 203]\nencode.price = "number"\n', encoding="utf-8"
    )
    described = _load(tmp_path / "own.toml")
    assert (described.classes, described.assumed) == (1, "")
    assert described.labels is not None
    np.testing.assert_allclose(203 * described.labels, np.array(PRICES, float))


REFUSED: list[tuple[list[str], dict[str, Any], type[Exception], str]] = [
    (PRICES, {"label": "cost"}, DataError, "column 'cost' is missing: the file has id, a, b, price"),
    (PRICES, {"label": "id"}, ConfigError, "--label id: this column names or splits the rows"),
    (PRICES, {"label_kind": "number"}, ConfigError, "label_kind = 'number' without --label: name the column"),
    (
        PRICES,
        {"label": "price", "classes": 2},
        ConfigError,
        "--classes 2: own.csv has a number as label, 'pr",
    ),
    (
        ["5"] * 30,
        {"label": "price", "label_kind": "number"},
        DataError,
        "it holds 1 number: a model needs two",
    ),
    (["5"] * 30, {"label": "price"}, DataError, "label_column 'price' holds 1 class: a model needs at least"),
    (
        [f"€ {p}" for p in PRICES],
        {"label": "price"},
        DataError,
        "--label price: it holds 30 different texts: read numbers with marks or a unit by --encode price=num",
    ),
    (
        [f"€ {p}" for p in PRICES],
        {"label": "price", "label_kind": "number"},
        DataError,
        "--label price: it holds no numbers: a model needs two different ones, choose another label",
    ),
    (
        [*PRICES[:-1], "inf"],
        {"label": "price"},
        DataError,
        "label_column 'price' holds no number in data row 30: correct it, set encode.price",
    ),
    (["", *PRICES], {"label": "price"}, DataError, "label_column 'price' is empty in data row 1"),
    (
        PRICES[:1],
        {"label": "price", "label_kind": "number"},
        DataError,
        "it holds 1 number: a model needs two",
    ),
]


@pytest.mark.parametrize(("labels", "given", "error", "sentence"), REFUSED)
def test_a_label_that_does_not_fit_is_refused(
    tmp_path: Path, labels: list[str], given: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence.replace("(", r"\(")):
        _load(_csv(tmp_path, labels), **given)


def test_the_command(vflens: Run, refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "candidates", lambda: iter([("dp_gaussian", {}, DPGaussian)]))
    own, page = _csv(tmp_path, PRICES), ("--out", tmp_path / "a.html", "--known", "5", "--models", "2")
    ended = vflens("audit", own, "--label", "price", *page, "--json")
    assert ended.code == 0, ended.err
    facts = strict(ended.out)
    assert facts["label"]["name"] == "price"
    assert facts["columns"] == ["a", "b"]
    assert any(s == facts["label"]["assumed"] for s in nonempty(facts["verdict"]))
    assert "data set's name" not in refused(2, "audit", "diabetes", "--label", "progression", *page)
    assert "--label with --weights" in refused(
        2, "audit", own, "--label", "price", "--weights", "w.npz", *page
    )
