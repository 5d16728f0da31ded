"""A label thief in a passive party: what it received, and labels that the active party granted; scored by the
active party.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from labelthieves import LABELS, LINKS, MLP, TWO_CLASSES
from laboratory import SYNTHETIC, THREE, close, estimates, federation
from thinned import first

from vflens.attacks.pmc import PassiveModelCompletion
from vflens.errors import KnowledgeError
from vflens.experiments.offline.attack import attack_recorded
from vflens.experiments.offline.score import score_estimate
from vflens.experiments.pages.report import render
from vflens.experiments.results.folders import read_party
from vflens.experiments.results.labels_membership import label_results
from vflens.experiments.results.record import read_runs
from vflens.experiments.results.results import failed, skipped
from vflens.plugins.attack import Attack
from vflens.plugins.malicious import breaks_protocol
from vflens.protocol.acts import Guess, Submission
from vflens.registry import ATTACKS
from vflens.storage import journal
from vflens.storage.metrics import Name
from vflens.types import Knowledge, Phase, Point, Setting, numbered, statuses


def _scored(home: Path, name: str, scored: Phase | None = None) -> dict[str, Any]:
    facts = attack_recorded(home / "passive", name, None, home / "estimate.npz", scored=scored)
    assert facts["target"] == "active"
    return score_estimate(home / "estimate.npz", home / "active" / "config.toml")


def test_training_softmax_regression_in_the_clear_tells_a_passive_party_every_label(tmp_path: Path) -> None:
    federation(tmp_path, attacks=[]).run()
    found = _scored(tmp_path, "gradient_sign")
    assert found["rows"] == 72
    assert found["label_accuracy"] == 1.0
    assert found["label_auc"] == 1.0
    assert found["blind_guess"] == "the most frequent class"
    assert found["blind_label_accuracy"] < 0.6


def test_rows_of_one_class_have_no_auc(tmp_path: Path) -> None:
    """Nothing is there to be ranked: NaN with a reason in the log, never a number."""
    local = federation(tmp_path, attacks=[])
    local.coordinator.prepare()
    active = local.active
    train = active.run.federation.train
    rows = train[active.run.labels[train] == 0]
    guess = Guess("sign", np.eye(3)[np.zeros(len(rows), int)], numbered(statuses(len(rows))))
    active.run.scoring.keep_errors(Submission("tiny/run", "passive", "train", rows, guesses=(guess,)))
    found = {m: active.metrics.last(m) for m in (Name.LABEL_AUC, Name.LABEL_ACCURACY)}
    assert math.isnan(found[Name.LABEL_AUC] or 0)
    assert found[Name.LABEL_ACCURACY] == 1
    log = (tmp_path / "active" / "events.jsonl").read_text(encoding="utf-8")
    assert "label_auc is undefined: the scored rows are of one class" in log
    close(local)


def test_labels_drawn_at_random_are_what_it_reads(tmp_path: Path) -> None:
    """With ε-label DP it reads the drawn labels exactly; they are the true ones as often as ε says."""
    data = {**SYNTHETIC, "rows": 1000}
    defenses = [{"name": "label_dp", "at": "active", "epsilon": 1.0}]
    training = {"epochs": 1, "batch_size": 100}
    federation(tmp_path, data=data, defenses=defenses, training=training, attacks=[]).run()
    kept = math.e / (math.e + 2)
    assert abs(_scored(tmp_path, "gradient_sign")["label_accuracy"] - kept) < 5 * np.sqrt(
        kept * (1 - kept) / 800
    )


@pytest.mark.parametrize("aggregator", ["coordinator", "active"])
def test_gradients_of_embeddings_point_to_one_side_per_class(tmp_path: Path, aggregator: str) -> None:
    settings: dict[str, Any] = {
        "data": TWO_CLASSES,
        "model": MLP,
        "training": {"epochs": 6, "batch_size": 40, "learning_rate": 0.01},
        "disclose": [LABELS],
        "attacks": [],
        "aggregator": aggregator,
    }
    federation(tmp_path, **settings).run()
    assert _scored(tmp_path, "direction_scoring")["label_auc"] > 0.9
    for scored, rows in ((Phase.TRAIN, 240 - 20), (None, 60)):  # granted labels are not scored
        completed = _scored(tmp_path, "pmc", scored)
        assert completed["rows"] == rows
        assert completed["label_accuracy"] > completed["blind_label_accuracy"] + 0.1


@pytest.mark.parametrize("fine_tune", [False, True])
def test_the_control_of_model_completion_knows_nothing_of_the_training(
    tmp_path: Path, fine_tune: bool
) -> None:
    """Its answer stays the same, bit for bit, whatever the bottom model has learned."""
    control = {"untrained": True, "fine_tune": fine_tune, "fine_tune_steps": 20, "steps": 20}
    settings: dict[str, Any] = {
        "data": TWO_CLASSES,
        "model": MLP,
        "disclose": [LABELS],
        "attacks": [{"name": "pmc", "at": "passive", **control}],
    }
    found = []
    for epochs in (1, 4):
        home = tmp_path / str(epochs)
        federation(home, training={"epochs": epochs, "batch_size": 40}, **settings).run()
        found.append(
            {m.scored_set: m.value for m in read_party(home / "active").metrics if m.name == "label_auc"}
        )
    assert found[0] == found[1]
    assert set(found[0]) == {"train", "predict"}


def test_an_attack_on_labels_may_record_logits_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guessed logits are compared with received scores, which a passive party has none of."""
    complete = PassiveModelCompletion.reconstruct

    def with_logits(attack: Any, view: Any, *, rng: Any) -> Any:
        found = complete(attack, view, rng=rng)
        return replace(found, extras={**found.extras, "logits": np.zeros((len(found.rows), 2))})

    monkeypatch.setattr(PassiveModelCompletion, "reconstruct", with_logits)
    settings: dict[str, Any] = {
        "data": TWO_CLASSES,
        "model": MLP,
        "training": {"epochs": 1, "batch_size": 40},
        "disclose": [LABELS],
        "attacks": [{"name": "pmc", "at": "passive", "steps": 5}],
    }
    federation(tmp_path, **settings).run()
    stated = {m.scored_set for m in read_party(tmp_path / "active").metrics if m.attack == "pmc"}
    assert stated == {"train", "predict"}


@pytest.mark.parametrize("aggregator", first(["coordinator", "active"], 0))
def test_a_thief_completes_its_model_behind_its_own_passport(tmp_path: Path, aggregator: str) -> None:
    """Its keys and its autoencoder are no secret from itself: its embeddings of prediction rows are those
    that it sent.
    """
    settings: dict[str, Any] = {
        "data": TWO_CLASSES,
        "model": {**MLP, "combine": "concatenate"},
        "training": {"epochs": 6, "batch_size": 40, "learning_rate": 0.01},
        "disclose": [LABELS],
        "attacks": [
            {"name": "pmc", "at": "passive"},
            {"name": "pmc:printed", "at": "passive", "fine_tune": True, "fine_tune_steps": 60},
        ],
        "aggregator": aggregator,
        "defenses": [{"name": "passport", "at": at} for at in ("passive", "active")],
    }
    local = federation(tmp_path, **settings)
    local.run()
    with np.load(tmp_path / "passive" / "own.npz") as own:
        embeddings = own["embeddings"]
    assert len(embeddings) == 300
    predicted = [
        r
        for r in journal.read(tmp_path / aggregator / "transcript")
        if (r.point, r.exchange.phase, r.sender) == (Point.EMBEDDING, Phase.PREDICT, "passive")
    ]
    assert sum(len(r.rows) for r in predicted) == 60
    for r in predicted:
        np.testing.assert_allclose(embeddings[r.rows], r.tensor("embedding"), rtol=0, atol=1e-5)
    model = local.passive["passive"].adversary.own_model()
    stated = read_party(tmp_path / "active").metrics
    auc = {(m.attack, m.scored_set): m.value for m in stated if m.name == "label_auc"}
    for scored in (Phase.TRAIN, Phase.PREDICT):
        found = _scored(tmp_path, "pmc", scored)
        assert found["label_accuracy"] > found["blind_label_accuracy"] + 0.1
        assert found["label_auc"] == auc["pmc", scored]
        # The record gives the same: the model is rebuilt from the party's folder.
        assert _scored(tmp_path, "pmc:printed", scored)["label_auc"] == auc["pmc:printed", scored] > 0.6
    with torch.no_grad():
        again = model(torch.tensor(local.passive["passive"].run.inputs.kept, dtype=torch.float32)).numpy()
    np.testing.assert_allclose(again, embeddings, rtol=0, atol=1e-5)


def test_a_party_of_softmax_regression_has_no_module_to_learn_on_with(tmp_path: Path) -> None:
    local = federation(tmp_path)
    local.coordinator.prepare()
    words = r"^the federation trains softmax regression: 'passive' has no module to learn on with$"
    with pytest.raises(KnowledgeError, match=words):
        local.passive["passive"].adversary.own_model()


@pytest.mark.facts
def test_every_attack_on_labels_runs_against_passports_at_both_parties(tmp_path: Path) -> None:
    kinds: dict[str, type[Attack]] = {n: ATTACKS.get(n) for n in ATTACKS.names()}
    on_labels = [n for n, k in kinds.items() if k.estimates == "labels" and Setting.VERTICAL in k.settings]
    honest = [n for n in on_labels if not breaks_protocol(kinds[n])]
    on_classes = [n for n in honest if kinds[n].label_kind == "classes"]
    names = [n for n in on_classes if Knowledge.OPENINGS not in kinds[n].needs]
    settings: dict[str, Any] = {
        "data": TWO_CLASSES,
        "model": MLP,
        "training": {"epochs": 4, "batch_size": 40, "learning_rate": 0.01},
        "disclose": [LABELS],
        "attacks": [{"name": n, "at": "passive"} for n in names],
        "defenses": [{"name": "passport", "at": at} for at in ("passive", "active")],
    }
    federation(tmp_path, **settings).run()
    (done,) = read_runs([tmp_path])
    assert failed(done) == []
    without = {s.attack for s in skipped(done) if "are not those of 2 logits" in s.reason}
    assert without == {s.attack for s in skipped(done)}
    found = {(r.attack, r.scored_set): r for r in label_results(done)}
    phases = {n: kinds[n].estimated_rows for n in names if n not in without}
    assert set(found) == {(n, str(phase)) for n in phases for phase in phases[n]}
    # All rows of a batch share a key: with two classes their gradients still point to one side each.
    assert {n for (n, scored), r in found.items() if scored == "train" and (r.auc or 0) > 0.8} >= {
        n for n in phases if Knowledge.GRADIENTS in kinds[n].needs and n != "norm_scoring"
    }
    page = render([done])
    for n in names:
        assert (f"{n} finds classes without names" in page) == kinds[n].up_to_renaming


# --- in the running federation

#: Two thieves, one of whom was granted labels.
THIEVES: dict[str, Any] = {
    "parties": THREE,
    "data": TWO_CLASSES,
    "model": MLP,
    "training": {"epochs": 2, "batch_size": 40, "learning_rate": 0.01},
    "disclose": [{**LABELS, "to": "b"}],
    "attacks": [
        {"name": "half"},
        {"name": "norm_scoring", "at": "a"},
        {"name": "norm_scoring", "at": "b"},
        {"name": "direction_scoring", "at": "a"},
        {"name": "direction_scoring", "at": "b"},
        {"name": "pmc", "at": "b", "steps": 20},
    ],
}


def test_thieves_run_inside_the_federation_over_both_links(tmp_path: Path) -> None:
    """Each is scored on what it was not granted, its figures stand at the active party, its estimate is that
    of the record.
    """
    found = []
    for name, joined in LINKS.items():
        home = tmp_path / name
        local = federation(home, **THIEVES)
        with joined(local):
            local.run()
        stated = {p: read_party(home / p).metrics for p in ("a", "b", "active")}
        rows = {
            (m.adversary, m.attack, m.scored_set): m.rows for m in stated["active"] if m.name == "label_auc"
        }
        assert rows == {
            ("a", "norm_scoring", "train"): 240,
            ("b", "norm_scoring", "train"): 220,
            ("b", "direction_scoring", "train"): 220,
            ("b", "pmc", "train"): 220,
            ("b", "pmc", "predict"): 60,
        }
        (skipped,) = (m for m in stated["a"] if m.name == "skipped")
        assert (skipped.attack, skipped.adversary) == ("direction_scoring", "a")
        assert "granted no labels to 'a'" in skipped.detail
        figures = {
            (m.adversary, m.attack, m.scored_set): m.value
            for m in stated["active"]
            if m.name == "label_accuracy"
        }
        for party in ("a", "b"):  # the lab tells them
            heard = {(m.attack, m.scored_set): m.value for m in stated[party] if m.name == "label_accuracy"}
            assert heard == pytest.approx({(n, s): v for (p, n, s), v in figures.items() if p == party})
        found.append((estimates(home), figures))
    assert found[0] == found[1]
    facts = attack_recorded(home / "b", "direction_scoring", None, tmp_path / "estimate.npz")
    assert facts["rows"] == 220
    with (
        np.load(tmp_path / "estimate.npz") as offline,
        np.load(home / "b" / "estimates" / "active.direction_scoring.train.npz") as live,
    ):
        for name in ("rows", "values", "status"):
            np.testing.assert_array_equal(offline[name], live[name], strict=True)
    scored = score_estimate(tmp_path / "estimate.npz", home / "active" / "config.toml")
    assert scored["label_accuracy"] == figures["b", "direction_scoring", "train"]
