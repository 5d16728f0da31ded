"""Membership from predictions: people who trained come back, and who gets the answers asks who they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from commandline import Run
from laboratory import figures
from scipy import stats

import vflens as vl
from vflens.config.writing import toml_text
from vflens.errors import ConfigError
from vflens.experiments.evidence.measured import measured
from vflens.experiments.offline.attack import attack_recorded
from vflens.experiments.offline.score import score_estimate
from vflens.experiments.results.titles import named
from vflens.numerics.measures.advantage import exact
from vflens.numerics.measures.ranking import auc
from vflens.storage.files import load_arrays
from vflens.storage.journal import Reader
from vflens.types import Array, Phase, Point

BACK = 80
ROWS: dict[str, Any] = {
    "name": "back",
    "seed": 1,
    "data": {
        **{"name": "synthetic", "rows": 160, "features": 60, "classes": 3, "informative": 10},
        "returning": BACK,
    },
    "split": {"kind": "fraction", "fraction": 0.5},
    "predict_share": 0.5,
    "training": {"epochs": 60, "batch_size": 20, "learning_rate": 0.01},
    "disclose": [{"what": "candidates", "to": "operator", "rows": 2 * BACK}],
    "attacks": [
        {"name": "confidence", "at": "operator"},
        {"name": "confidence:loss", "at": "operator", "by": "loss"},
    ],
}
FEW: dict[str, Any] = {
    **ROWS,
    "data": {**ROWS["data"], "features": 12, "informative": 6},
    "training": {"epochs": 200, "batch_size": 20, "learning_rate": 0.01},
}
DEEP = {"model": {"architecture": "mlp", "width": 16, "hidden": [32], "top": [16]}}
UNTRAINED = {"training": {"epochs": 1, "batch_size": 20, "learning_rate": 1e-6}}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> vl.Run:
    return vl.run(ROWS, out=tmp_path_factory.mktemp("runs"))


def found_by(run: vl.Run) -> dict[str, float]:
    return {r.attack: r.auc for r in vl.read_run(run.folder).membership}


def answers(run: vl.Run) -> tuple[Array, Array, Array]:
    """All prediction rows, as its files have them: log-probabilities, labels, and who trained before."""
    home = run.folder / "run/active"
    scored = list(Reader(home / "transcript").select(Point.SCORES, phases={Phase.PREDICT}))
    rows = np.concatenate([r.rows for r in scored])
    ids = aligned_ids(home)
    trained = {f"again-{name}" for name in np.delete(ids, rows)}
    log_p = np.concatenate([r.tensor("scores") for r in scored])
    return log_p, load_arrays(home / "own.npz")["labels"][rows], np.array([n in trained for n in ids[rows]])


def aligned_ids(home: Path) -> Array:
    table = pq.read_table(home / "data.parquet")
    return np.array(table["id"].to_pylist())[load_arrays(home / "order.npz")["order"]]


SCORES: dict[str, Callable[[Array, Array], Array]] = {
    "confidence": lambda log_p, y: log_p.max(axis=1),
    "confidence:loss": lambda log_p, y: log_p[np.arange(len(y)), y],
}


@pytest.mark.parametrize("attack", SCORES)
def test_the_auc_is_that_of_mann_and_whitney_on_the_released_scores(done: vl.Run, attack: str) -> None:
    """All prediction rows are candidates here: 80 who trained, 80 others."""
    log_p, labels, back = answers(done)
    assert (back.sum(), (~back).sum()) == (BACK, BACK)
    scores = SCORES[attack](log_p, labels)
    u = stats.mannwhitneyu(scores[back], scores[~back])
    assert found_by(done)[attack] == pytest.approx(u.statistic / BACK**2, abs=1e-12)
    assert u.pvalue < 1e-6  # a model of 60 columns knows its 80 rows by heart
    at_ten = (scores[back] > np.sort(scores[~back])[-(BACK // 10) - 1]).mean()
    assert figures(done.folder / "run/active")["membership_tpr", attack, "0.1"] == pytest.approx(at_ten)


def test_protected_training_hides_nothing_of_what_is_answered(tmp_path: Path) -> None:
    """Its model is the one that training in the clear would give, and so are its answers."""
    shares = {
        "epochs": 20,
        "batch_size": 20,
        "learning_rate": 0.5,
        "optimizer": "sgd",
        "protection": "shares",
    }
    run = vl.run({**ROWS, "training": shares}, out=tmp_path)
    log_p, labels, back = answers(run)
    scores = SCORES["confidence:loss"](log_p, labels)
    u = stats.mannwhitneyu(scores[back], scores[~back])
    assert found_by(run)["confidence:loss"] == pytest.approx(u.statistic / BACK**2, abs=1e-12)
    assert u.pvalue < 1e-4


@pytest.mark.facts
def test_few_columns_hide_in_softmax_regression_what_a_network_learns_by_heart(tmp_path: Path) -> None:
    """By the labels, the better attack: 5 standard deviations of a guess against 3."""
    linear = found_by(vl.run(FEW, out=tmp_path / "linear"))
    deep = found_by(vl.run({**FEW, **DEEP}, out=tmp_path / "deep"))
    assert deep["confidence:loss"] > 0.72
    assert linear["confidence:loss"] < 0.65
    assert deep["confidence"] > linear["confidence"] + 0.05


@pytest.mark.parametrize("model", [{}, DEEP], ids=["softmax regression", "split network"])
def test_a_model_that_has_not_trained_betrays_nobody(tmp_path: Path, model: Any) -> None:
    guess = np.sqrt((2 * BACK + 1) / (12 * BACK**2))  # the deviation of a guess's AUC
    found = found_by(vl.run({**FEW, **UNTRAINED, **model}, out=tmp_path))
    np.testing.assert_allclose([found["confidence"], found["confidence:loss"]], 0.5, atol=3 * guess)


def test_labels_alone_leave_the_gap_between_right_answers(tmp_path: Path) -> None:
    """Every released probability is 1: without labels nothing is left, with them right or wrong (Yeom)."""
    only = [{"name": "run", "defenses": [{"name": "label_only", "at": "coordinator"}]}]
    run = vl.run({**ROWS, "scenarios": only}, out=tmp_path)
    log_p, labels, back = answers(run)
    right = log_p.argmax(axis=1) == labels
    gap = right[back].mean() - right[~back].mean()
    assert gap > 0.2
    assert found_by(run) == {"confidence": 0.5, "confidence:loss": pytest.approx(0.5 + gap / 2)}


def test_who_comes_back_is_no_part_of_the_utility(done: vl.Run) -> None:
    log_p, labels, back = answers(done)
    right = log_p.argmax(axis=1) == labels
    assert vl.read_run(done.folder).utility["accuracy"] == pytest.approx(right[~back].mean())
    assert right[back].mean() > right[~back].mean() + 0.2


@pytest.mark.usefixtures("one_start")
def test_processes_and_the_command_find_the_same(tmp_path: Path) -> None:
    short = {**ROWS, "training": {**ROWS["training"], "epochs": 10}}
    apart = vl.run(short, out=tmp_path / "apart", in_process=False)
    assert found_by(apart) == found_by(vl.run(short, out=tmp_path / "here"))
    home = apart.folder / "run/active"
    before = sorted(f.name for f in home.iterdir())
    out = tmp_path / "e.npz"
    facts = attack_recorded(home, "confidence", None, out, parameters={"by": "entropy"})
    assert (facts["target"], facts["rows"]) == ("active", 2 * BACK)
    assert sorted(f.name for f in home.iterdir()) == before
    log_p, _, back = answers(apart)
    entropy = stats.entropy(np.exp(log_p), axis=1)
    scored = score_estimate(out, home / "config.toml")
    assert scored["membership_auc"] == pytest.approx(auc(np.stack([entropy, -entropy], 1), back.astype(int)))
    assert scored["blind_membership_auc"] == 0.5


def test_some_candidates_are_half_of_people_who_trained(tmp_path: Path) -> None:
    run = vl.run({**ROWS, "disclose": [{"what": "candidates", "to": "operator", "rows": 60}]}, out=tmp_path)
    assert {r.rows for r in vl.read_run(run.folder).membership} == {60}
    values = load_arrays(run.folder / "run/active/estimates/active.confidence.npz")
    assert values["rows"].tolist() == list(range(60))  # places, no rows: where a row stands says nothing
    log_p, _, back = answers(run)
    top = log_p.max(axis=1)
    known = dict(zip(top, back, strict=True))
    members = [known[v] for v in values["values"][:, 0]]
    assert (sum(members), len(members)) == (30, 60)
    assert 8 <= sum(members[:30]) <= 22  # shuffled: 15 ± 2·1.9


def test_a_person_whose_row_was_lost_did_not_train(tmp_path: Path) -> None:
    """With an overlap below 1 some training rows are missing at one party, and their return stays."""
    lossy = {**ROWS, "overlap": 0.7, "disclose": [{"what": "candidates", "to": "operator", "rows": 40}]}
    run = vl.run({**lossy, "attacks": ROWS["attacks"][:1]}, out=tmp_path)
    home = run.folder / "run/active"
    log_p, _, back = answers(run)
    came = sum(name.startswith("again-") for name in aligned_ids(home))
    assert 20 <= back.sum() < came
    members = dict(zip(log_p.max(axis=1), back, strict=True))
    values = load_arrays(home / "estimates/active.confidence.npz")["values"][:, 0]
    trained = np.array([members[value] for value in values])
    assert trained.sum() == 20
    u = stats.mannwhitneyu(values[trained], values[~trained])
    (result,) = vl.read_run(run.folder).membership
    assert result.auc == pytest.approx(u.statistic / 400, abs=1e-12)


def test_who_sees_both_phases_recognises_who_comes_back(done: vl.Run) -> None:
    """The coordinator compares partial logits of predictions with those of the last epoch, by distance."""
    received = Reader(done.folder / "run/coordinator/transcript")
    ids, sent = aligned_ids(done.folder / "run/active"), dict[Phase, dict[int, Array]]()
    for phase in (Phase.TRAIN, Phase.PREDICT):
        arrived = received.select(Point.EMBEDDING, phases={phase}, sender="passive")
        sent[phase] = {row: z for r in arrived for row, z in zip(r.rows, r.tensor("embedding"), strict=True)}
    last = np.array(list(sent[Phase.TRAIN].values()))
    away = {row: float(((last - z) ** 2).sum(axis=1).min()) for row, z in sent[Phase.PREDICT].items()}
    back = {row: ids[row].startswith("again-") for row in away}
    distances = [[away[row] for row in away if back[row] is found] for found in (True, False)]
    assert stats.mannwhitneyu(*distances).statistic < 0.01 * BACK**2


def test_documents_name_who_gets_the_predictions(done: vl.Run) -> None:
    record = vl.read_run(done.folder)
    assert named(record, "operator") == "whoever gets predictions"
    stated = {m.adversary for m in measured([record.findings])}
    assert stated == {"whoever gets predictions"}
    assert "<h2>Who trained</h2>" in done.report.read_text(encoding="utf-8")


@pytest.mark.parametrize("shift", [0.0, 0.6])
def test_the_interval_of_an_auc_holds_and_is_no_bolder_than_mann_and_whitney(shift: float) -> None:
    """Two normal laws: the interval that documents give has the AUC Φ(shift/√2) in 95 % of draws at least."""
    rng, n, held = np.random.default_rng(5), 40, 0
    truth = stats.norm.cdf(shift / np.sqrt(2))
    for _ in range(300):
        members, others = rng.normal(shift, size=n), rng.normal(size=n)
        u = stats.mannwhitneyu(members, others)
        low, high = exact(float(u.statistic) / n**2, n)
        held += low <= truth <= high
        assert u.pvalue < 0.05 or low <= 0.5 <= high
    assert held >= 0.95 * 300


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"data": {**ROWS["data"], "returning": 79}}, "set data.returning to at least 80"),
    ({"attacks": [{"name": "confidence", "at": "operator", "colluders": ["active"]}]}, "leave colluders out"),
    ({"disclose": [{"what": "candidates", "to": "nobody", "rows": 2}]}, "party 'nobody' is none of"),
]


@pytest.mark.parametrize(("changes", "text"), REFUSED)
def test_what_cannot_be_is_refused(changes: Any, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        vl.Experiment(**{**ROWS, **changes})


CHECKED: list[tuple[dict[str, Any], str]] = [
    ({"disclose": []}, "grants no candidates: set data.returning"),
    ({"attacks": [{"name": "confidence"}]}, "estimates membership, which data parties know"),
    ({"attacks": [{"name": "confidence", "at": "passive"}]}, "estimates membership, which data parties know"),
    ({"attacks": [{"name": "half_star", "at": "operator"}]}, "at operator 'operator' estimates columns"),
    ({"attacks": [{"name": "lira", "at": "operator"}]}, "is made for horizontal federations"),
    (
        {
            "data": {"name": "diabetes", "returning": BACK},
            "model": {"family": "linear_regression"},
        },
        "disclose 'candidates' with data.label_kind = 'number'",
    ),
    ({"lab": False}, "runs on folders of the finished run, and lab = false"),
    ({"data": {**ROWS["data"], "returning": 81}}, "there are 80 training rows, let fewer return"),
    ({"disclose": [{"what": "candidates", "to": "passive", "rows": 2}]}, "candidates, to 'operator'"),
]


@pytest.mark.parametrize(("changes", "text"), CHECKED)
def test_check_refuses_what_would_never_run(vflens: Run, tmp_path: Path, changes: Any, text: str) -> None:
    file = tmp_path / "back.toml"
    file.write_text(toml_text({**ROWS, **changes}), encoding="utf-8")
    assert text in vflens("check", file).err


def test_check_says_who_asks(vflens: Run, tmp_path: Path) -> None:
    file = tmp_path / "back.toml"
    file.write_text(toml_text(ROWS), encoding="utf-8")
    text = vflens("check", file)
    assert text.code == 0, text.err
    assert "its operator: confidence, its operator: confidence:loss" in text.out


def test_without_candidates_the_run_skips_it_and_other_folders_are_refused(
    tmp_path: Path, done: vl.Run
) -> None:
    run = vl.run({**ROWS, "disclose": [], "attacks": ROWS["attacks"][:1]}, out=tmp_path)
    (skipped,) = vl.read_run(run.folder).skipped
    assert (skipped.attack, skipped.adversary) == ("confidence", "operator")
    assert "granted its operator no candidates" in skipped.reason
    with pytest.raises(ConfigError, match="membership is asked of the answers of 'active' alone"):
        attack_recorded(done.folder / "run/passive", "confidence", None, tmp_path / "e.npz")
