"""A federation that learns a number: its model, its worth, its answers, what attacks make of it, refusals."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
from laboratory import federation
from oneprocess import LocalFederation
from runfolder import metric, write_party
from sklearn.metrics import r2_score, root_mean_squared_error

from vflens.cli.federation import _units
from vflens.clients.vertical.utility import in_words
from vflens.errors import ConfigError, DataError, KnowledgeError, ProtocolError
from vflens.experiments.results import clear_training
from vflens.experiments.results.record import read_run
from vflens.experiments.run.check import check
from vflens.numerics.measures.fit import r2, rmse_stderr
from vflens.protocol.acts import Query
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.services.operator import _documents
from vflens.storage.metrics import Name, metric_rows
from vflens.types import Array

#: 90 rows, of which 72 train in one batch, to the optimum of the penalised loss.
L2 = 0.05
SETTINGS: dict[str, Any] = {
    "data": {"name": "diabetes", "sample": 90},
    "split": {"kind": "columns", "columns": {"passive": ["bmi"]}},
    "model": {"family": "linear_regression"},
    "training": {"epochs": 700, "batch_size": 72, "learning_rate": 0.25, "optimizer": "sgd", "l2": L2},
    "attacks": [{"name": name} for name in ("half", "ls", "half_star", "black_box")],
    "transcript": {"every": 700},
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> LocalFederation:
    """A finished federation; its columns and labels stay with its parties."""
    local = federation(tmp_path_factory.mktemp("numbers"), **SETTINGS)
    local.run()
    return local


def _metrics(local: LocalFederation, party: str) -> list[dict[str, Any]]:
    return metric_rows(local.data_parties[party].folder / "metrics.parquet")


def _design(local: LocalFederation) -> Array:
    """All columns in [0, 1] (N, d), the active party's first, and ones for the bias."""
    parts = [local.active.run.truth[:], local.passive["passive"].run.truth[:]]
    return np.hstack([*parts, np.ones((len(parts[0]), 1))])


def test_training_ends_at_the_solution_of_ridge_regression(finished: LocalFederation) -> None:
    train, y = finished.coordinator.aligned.train, finished.active.run.labels
    x = _design(finished)[train]
    # Its penalty counts each weight as √(n·l2) rows more that say 0.
    rows, aims = np.vstack([x, np.eye(x.shape[1]) * np.sqrt(len(x) * L2)]), np.append(y[train], np.zeros(11))
    expected = np.linalg.lstsq(rows, aims, rcond=None)[0]
    active, passive = finished.active.parameters(), finished.passive["passive"].parameters()
    found = np.concatenate([active["weight"][0], passive["weight"][0], passive["bias"]])
    np.testing.assert_allclose(found, expected, atol=1e-8)
    assert np.abs(expected).min() > 1e-3


def test_its_worth_is_that_of_scikit_learn_in_the_unit_of_the_label(finished: LocalFederation) -> None:
    federated = finished.coordinator.aligned
    weights = np.concatenate(
        [p.parameters()["weight"][0] for p in (finished.active, finished.passive["passive"])]
    )
    bias = finished.passive["passive"].parameters()["bias"]
    z = _design(finished)[federated.predict] @ np.concatenate([weights, bias])
    table, numbers = finished.active.table, 25 + 321 * z
    places = {name: row for row, name in enumerate(table.ids.tolist())}
    assert table.labels is not None
    truth = table.labels[[places[i] for i in finished.active.run.prediction_ids.tolist()]]
    found = {name: finished.active.metrics.last(name) for name in (Name.R2, Name.RMSE, Name.R2_ALONE)}
    assert found[Name.R2] == pytest.approx(r2_score(truth, numbers), abs=1e-9)
    assert found[Name.RMSE] == pytest.approx(root_mean_squared_error(truth, numbers), abs=1e-9)
    squares = (truth - numbers) ** 2
    stderr = np.std(squares, ddof=1) / np.sqrt(len(squares)) / (2 * root_mean_squared_error(truth, numbers))
    assert finished.active.metrics.last(Name.RMSE_STDERR) == pytest.approx(stderr, abs=1e-9)
    assert found[Name.R2_ALONE] is not None
    assert found[Name.R2_ALONE] != found[Name.R2]
    assert finished.active.metrics.last(Name.ACCURACY) is None
    assert finished.coordinator.metrics.last(Name.ARGMAX_KEPT) is None
    answers = finished.active.query(Query("0-4"))
    assert [d["label"] for d in _documents(answers)] == ["progression"] * 5
    np.testing.assert_allclose([d["value"] for d in _documents(answers)], numbers[:5], atol=1e-9)


def test_a_constant_number_has_no_r2() -> None:
    assert np.isnan(r2(np.arange(3.0), np.ones(3)))


def test_labels_that_are_all_equal_have_no_r2(tmp_path: Path) -> None:
    """Said in words by the party, and of a model on shares beside its clear twin."""
    figures = dict.fromkeys((Name.R2, Name.R2_ALONE, Name.R2_CLEAR), float("nan"))
    assert in_words(figures.get) == "no R²: these rows have one label"
    measured = [metric(name, value) for name, value in figures.items()]
    measured += [metric(name, 2.5) for name in (Name.RMSE, Name.RMSE_CLEAR)]
    write_party(tmp_path / "run/active", "active", metrics=measured)
    (text,) = clear_training._beside_twins([read_run(tmp_path / "run")])
    assert text == (
        "Trained on shares the model has RMSE = 2.5 (in the label's unit) on prediction rows, trained in the "
        "clear with the same seed 2.5: all have one label, so that there is no R²."
    )


def test_the_unit_of_a_prediction_is_named() -> None:
    number = {"row": 3, "id": "7", "label": "price", "value": 12.5}
    assert list(_units([number, number])) == [
        "price is in the unit of its column in the table of the party with the labels"
    ]
    assert not list(_units([{"row": 3, "id": "7", "class": "yes", "scores": {"yes": 1.0}}]))


def test_the_standard_error_of_rmse_is_its_spread_over_samples() -> None:
    """Heavy tails: 400 rows, the RMSE of 3,000 samples."""
    rng = np.random.default_rng(1)
    samples = [rng.laplace(size=400) for _ in range(3000)]
    spread = np.std([np.sqrt(np.mean(e**2)) for e in samples])
    assert np.mean([rmse_stderr(e, np.zeros(400)) for e in samples]) == pytest.approx(spread, rel=0.05)
    assert rmse_stderr(np.ones(1), np.zeros(1)) == rmse_stderr(np.ones(9), np.ones(9)) == 0


def test_a_score_is_one_equation_of_the_unknown_columns(finished: LocalFederation) -> None:
    """One unknown column: each row has one solution; the attack finds it, and so does trying all values."""
    errors = {m["attack"]: m["value"] for m in _metrics(finished, "passive") if m["metric"] == "mse"}
    assert errors["ls"] < 1e-12
    assert errors["half"] > 0.01
    model, federated = finished.active.run.federation.model, finished.coordinator.aligned
    active, passive = finished.active.parameters(), finished.passive["passive"].parameters()
    own = finished.active.run.truth[:][federated.predict]
    truth = finished.passive["passive"].run.truth[:][federated.predict]
    known = own @ active["weight"].T + passive["bias"]
    scores = known + truth @ passive["weight"].T
    ((rows, system),) = model.linear_systems(scores, known, passive["weight"])
    assert rows.tolist() == list(range(len(truth)))
    tried = np.linspace(0, 1, 20_001)
    found = [tried[np.argmin(np.abs(tried * system.A[0, 0] - b))] for b in system.b[:, 0]]
    np.testing.assert_allclose(found, truth[:, 0], atol=1e-4)
    skipped = [m["detail"] for m in _metrics(finished, "active") if m["metric"] == "skipped"]
    assert skipped == ["the scores are predictions of a number: this attack is made for classes"]


def test_the_agreement_carries_the_bounds_of_the_label(finished: LocalFederation, tmp_path: Path) -> None:
    federated = finished.coordinator.aligned
    label = federated.active.label
    assert label is not None
    assert (label.low, label.high, federated.n_classes) == (25.0, 346.0, 1)
    federated.save(tmp_path)
    assert VerticalAgreement.load(tmp_path).parties == federated.parties
    assert VerticalAgreement.load(tmp_path).digest == federated.digest
    parties = [replace(p, label=replace(label, high=347.0)) if p.label else p for p in federated.parties]
    other = replace(federated, parties=tuple(parties))
    assert other.digest != federated.digest
    with pytest.raises(
        ProtocolError, match=r"a federation of ColumnInfo\(.*347.0.*\): 'active' has ColumnInfo"
    ):
        finished.active.aligned_run(other, np.arange(90))


def _file(folder: Path, changes: dict[str, Any]) -> Path:
    settings = {**SETTINGS, "attacks": [], "name": "numbers", "out": "runs", **changes}
    file = folder / "experiment.toml"
    file.write_text(tomli_w.dumps({k: v for k, v in settings.items() if v is not None}), encoding="utf-8")
    return file


def _defended(name: str, at: str, **settings: Any) -> dict[str, Any]:
    return {"scenarios": [{"name": "s", "defenses": [{"name": name, "at": at, **settings}]}]}


_HAS_NO = "has nothing to act on, linear regression has no "
_PARAMETERS = [{"what": "parameters", "to": to} for to in ("active", "coordinator")]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"model": None},
            "the label 'progression' is a number, softmax regression learns classes: set model",
        ),
        (
            {"data": {"name": "wine"}, "split": {"kind": "fraction", "fraction": 0.5}},
            "the labels are classes, linear regression learns a number: set data.label_kind = 'number' with",
        ),
        (_defended("label_dp", "active", epsilon=1.0), f"'label_dp' at 'active' {_HAS_NO}classes"),
        (_defended("grad_perturb", "active"), f"'grad_perturb' at 'active' {_HAS_NO}classes"),
        (
            _defended("marvell", "active"),
            "'marvell' at 'active' tells classes apart, linear regression learns",
        ),
        (_defended("label_only", "coordinator"), f"'label_only' at 'coordinator' {_HAS_NO}log-probabilities"),
        (_defended("round_scores", "coordinator"), f"'round_scores' at 'coordinator' {_HAS_NO}log-probabil"),
        *(
            (
                {**_defended(f"scheme_{i}", "coordinator"), "disclose": _PARAMETERS},
                f"'scheme_{i}' at 'coordinator' {_HAS_NO}log-probabilities",
            )
            for i in (1, 2, 3)
        ),
        (
            {"attacks": [{"name": "gradient_sign", "at": "passive"}]},
            "attack 'gradient_sign' at 'passive' would never run: the label is a number, and this attack is "
            "made for classes: leave it out",
        ),
        (
            {"attacks": [{"name": "agnostic"}]},
            "attack 'agnostic' at 'active' would never run: the label is a",
        ),
        (
            {"disclose": [{"what": "labels", "to": "passive", "rows": 5}]},
            "disclose 'labels' with data.label_kind = 'number': the attacks that learn from labels are made",
        ),
    ],
)
def test_what_needs_classes_is_refused_before_the_run(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises((ConfigError, KnowledgeError), match=re.escape(words)):
        check(_file(tmp_path, {"disclose": _PARAMETERS[:1], **changes}))


def test_clients_train_on_classes(tmp_path: Path) -> None:
    changes = {"parties": {"clients": 2}, "split": {"kind": "rows"}, "transcript": {}, "training": {}}
    with pytest.raises(DataError, match="the label 'progression' is a number: clients train on classes"):
        check(_file(tmp_path, {**changes, "model": None, "disclose": None, "horizontal": {"rounds": 1}}))


def test_an_attack_that_reads_classes_is_skipped_in_a_run(tmp_path: Path) -> None:
    """A party's own configuration knows nothing of the label of another."""
    changes = {"attacks": [{"name": "norm_scoring", "at": "passive"}], "training": {"epochs": 1}}
    local = federation(tmp_path, **{**SETTINGS, **changes, "transcript": {}})
    local.run()
    skipped = [m["detail"] for m in _metrics(local, "passive") if m["metric"] == "skipped"]
    assert set(skipped) == {"the label is a number, and this attack is made for classes"}
