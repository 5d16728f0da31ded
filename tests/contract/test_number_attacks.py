"""Attacks on a numeric label: what they find, how it is scored, what reports, sweeps and documents say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commandline import Run, strict, vflens
from laboratory import federation
from nonempty import nonempty
from oneprocess import LocalFederation
from processes import experiment_file

from vflens.errors import KnowledgeError
from vflens.experiments.evidence.declared import Declaration
from vflens.experiments.evidence.dpia import assess
from vflens.experiments.evidence.measured import target, unit, what
from vflens.experiments.outcome.finding import Quantity
from vflens.experiments.results.record import read_runs
from vflens.experiments.results.verdict import to_json, verdict
from vflens.experiments.run.check import check
from vflens.storage.journal import Reader
from vflens.storage.metrics import Name, metric_rows
from vflens.types import Phase, Point

_FIXTURES = (vflens,)  # used by name
SETTINGS: dict[str, Any] = {
    "data": {"name": "diabetes", "sample": 120},
    "split": {"kind": "columns", "columns": {"passive": ["bmi", "s5"]}},
    "model": {"family": "linear_regression"},
    "training": {"epochs": 2, "batch_size": 24, "learning_rate": 0.02, "optimizer": "sgd"},
    "attacks": [{"name": "first_residuals", "at": "passive"}],
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> LocalFederation:
    """A finished federation; its labels stay with the active party."""
    local = federation(tmp_path_factory.mktemp("labels"), **SETTINGS)
    local.run()
    return local


def _figures(local: LocalFederation, party: str) -> dict[tuple[str, str], float]:
    rows = metric_rows(local.data_parties[party].folder / "metrics.parquet")
    return {(m["metric"], m["attack"]): m["value"] for m in rows if m["scored_set"] == "train"}


def test_the_first_step_gives_labels_exactly_and_later_ones_what_z_hides(finished: LocalFederation) -> None:
    """By the gradients that were sent and the labels themselves: z = y + g/2."""
    y = finished.active.run.labels
    with np.load(finished.passive["passive"].folder / "estimates/active.first_residuals.train.npz") as kept:
        found = dict(zip(kept["rows"].tolist(), kept["values"][:, 0].tolist(), strict=True))
    sent = Reader(finished.passive["passive"].folder / "transcript")
    first, *later = [r for r in sent.select(Point.GRADIENT, phases={Phase.TRAIN}) if r.exchange.round == 0]
    np.testing.assert_allclose([found[row] for row in first.rows.tolist()], y[first.rows], atol=1e-12)
    for batch in nonempty(later):
        z = y[batch.rows] + batch.tensor("gradient")[:, 0] * len(batch.rows) / 2
        missed = (y[first.rows].mean() - y[batch.rows].mean()) - (z - z.mean())
        errors = [found[row] for row in batch.rows.tolist()] - y[batch.rows]
        np.testing.assert_allclose(errors, missed, atol=1e-12)
        assert np.abs(missed).max() > 1e-3
    assert sorted(found) == sorted(finished.coordinator.aligned.train.tolist())


def test_it_is_scored_as_a_column_beside_the_mean(finished: LocalFederation) -> None:
    train, y = finished.coordinator.aligned.train, finished.active.run.labels
    with np.load(finished.passive["passive"].folder / "estimates/active.first_residuals.train.npz") as kept:
        square = (np.clip(kept["values"][:, 0], 0, 1) - y[kept["rows"]]) ** 2
    own, facts = _figures(finished, "active"), _figures(finished, "passive")
    assert own[Name.MSE, "first_residuals"] == pytest.approx(square.mean())
    assert facts[Name.MSE, "first_residuals"] == own[Name.MSE, "first_residuals"]  # lab mode
    assert own[Name.BLIND_MSE, "column_means"] == pytest.approx(y[train].var())
    assert own[Name.COLUMN_UNIT, ""] == 321.0
    assert not {name for name, _ in (*own, *facts)} & {Name.LABEL_ACCURACY, Name.BLIND_LABEL_ACCURACY}


def test_reports_say_whose_label_leaks_and_in_its_unit(finished: LocalFederation) -> None:
    (run,) = read_runs([finished.active.folder.parent])
    text, mse = str(verdict([run])), _figures(finished, "active")[Name.MSE, "first_residuals"]
    assert "Trained in the clear, the active party's label leaks: first_residuals finds 9" in text
    assert "the passive party finds progression at the active party to within ± " in text
    assert "once a few are known" not in text
    (facts,) = to_json([run])["runs"]
    (result,) = facts["results"]
    assert (result["target"], result["mse"]) == ("active", pytest.approx(mse))
    (own,) = result["own_units"]
    assert (own["column"], own["error"]) == ("progression", pytest.approx(321 * mse**0.5))
    assert facts["labels"] == []


def test_a_document_names_the_label_and_who_finds_it(finished: LocalFederation) -> None:
    made = assess([finished.active.folder.parent], Declaration())
    found = {what(m): m for m in made.measured}
    assert {target(m) for m in made.measured} == {"label of active"}
    assert {m.adversary for m in made.measured} == {"the passive party"}
    assert unit(found["progression"]).endswith("unit of progression")
    assert not [s for s in made.untested if "No attack on labels" in s]


def test_classes_are_refused_before_the_run_and_skipped_in_one(tmp_path: Path) -> None:
    classes = {"data": {"name": "wine"}, "split": {"kind": "fraction", "fraction": 0.5}, "model": None}
    settings = {k: v for k, v in {**SETTINGS, **classes}.items() if v is not None}
    words = (
        "attack 'first_residuals' at 'passive' would never run: the labels are classes, and this attack is"
    )
    with pytest.raises(KnowledgeError, match=f"{words} made for a number: leave it out"):
        check(experiment_file(tmp_path, **settings))
    local = federation(tmp_path / "run", **settings)
    local.run()
    (run,) = read_runs([local.active.folder.parent])
    assert [s.reason for s in run.skipped] == ["the labels are classes, and this attack is made for a number"]


def test_a_threshold_and_a_tolerance_of_the_label(vflens: Run, tmp_path: Path) -> None:
    file = experiment_file(tmp_path, **SETTINGS)
    ended = vflens("run", file, "--in-process", "--json", "--fail-if", "progression within 20 > 10 %")
    assert (ended.code, [o["state"] for o in strict(ended.out)["thresholds"]]) == (15, ["broken"])
    (run,) = read_runs([tmp_path / "runs/tiny"])
    within = run.findings.only(Quantity.WITHIN)
    assert [(f.subject, round(f.tolerance or 0.0, 9)) for f in within] == [("progression", 20.0)]


def test_a_recorded_folder_is_attacked_and_the_owner_scores_it(
    vflens: Run, tmp_path: Path, finished: LocalFederation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = experiment_file(tmp_path, **SETTINGS)
    assert vflens("run", file, "--in-process").code == 0
    home = tmp_path / "runs/tiny/run"
    assert vflens("attack", home / "coordinator", "--attack", "first_residuals").code == 0
    ended = vflens("score", "estimate.npz", "--config", home / "active/config.toml", "--json")
    assert ended.code == 0, ended.err
    facts = strict(ended.out)
    assert facts["columns"]["progression"]["mse"] == facts["mse"] < 0.1 * facts["blind_mse"]


def test_a_sweep_has_its_error_beside_the_model_s_r2(vflens: Run, tmp_path: Path) -> None:
    noise = {"at": "active", "name": "dp_gaussian", "vary": "level", "values": [0.5], "clip": 1.0}
    file = experiment_file(tmp_path, **SETTINGS, sweep={"seeds": 2, "defenses": [noise]})
    ended = vflens("sweep", file, "--out", tmp_path / "out")
    assert ended.code == 0, ended.err
    page = (tmp_path / "out/sweep.html").read_text(encoding="utf-8")
    assert "progression, the label of active, train rows, dp_gaussian: what it buys and costs" in page
    ended = vflens("dpia", tmp_path / "out", "--json", "--out", tmp_path / "d.html")
    assert ended.code == 0, ended.err
    facts = strict(ended.out)
    assert not [s for s in facts["untested"] if "no attack on labels" in s]
    assert {m["target"] for m in nonempty(facts["measured"])} >= {"label of active"}
    (tried,) = facts["mitigations"]
    assert tried["accuracy"] is None
    assert tried["r2"]["value"] < tried["r2"]["baseline"]
    assert json.dumps(tried["rmse"])
