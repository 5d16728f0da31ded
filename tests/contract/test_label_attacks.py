"""A label thief in a passive party: what it received, and labels that the active party granted; scored by the active party."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from laboratory import SYNTHETIC, THREE, close, experiment, federation

from experiments.offline import attack_recorded, score_estimate
from experiments.run import run
from vfl import journal
from vfl.acts import Deliver, Disclose
from vfl.errors import ConfigError, KnowledgeError, ProtocolError
from vfl.types import Phase, Point

LABELS = {"what": "labels", "to": "passive", "rows": 20}
TWO_CLASSES = {**SYNTHETIC, "rows": 300, "classes": 2}
MLP = {"architecture": "mlp", "width": 8}


def _scored(home: Path, name: str) -> dict[str, Any]:
    facts = attack_recorded(home / "passive", name, None, home / "estimate.npz")
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


def test_gradients_of_embeddings_point_to_one_side_per_class(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "data": TWO_CLASSES,
        "model": MLP,
        "training": {"epochs": 6, "batch_size": 40, "learning_rate": 0.01},
        "disclose": [LABELS],
        "attacks": [],
    }
    federation(tmp_path, **settings).run()
    assert _scored(tmp_path, "direction_scoring")["label_auc"] > 0.9
    completed = _scored(tmp_path, "pmc")
    assert completed["rows"] == 240 - 20  # granted labels are not scored
    assert completed["label_accuracy"] > completed["blind_label_accuracy"] + 0.1


def test_labels_go_only_to_whom_they_are_granted(tmp_path: Path) -> None:
    what = experiment(
        tmp_path, parties=THREE, disclose=[{**LABELS, "to": "b"}], attacks=[], network={"transport": "unix"}
    )
    digests = []
    for in_process in (True, False):
        (home,) = run(
            what.model_copy(update={"out": tmp_path / str(in_process)}), in_process=in_process
        ).scenarios
        digests.append({p: journal.digest(home / p / "transcript") for p in "abc"})
        for party in "abc":
            received = [r for r in journal.read(home / party / "transcript") if r.point is Point.AUXILIARY]
            assert len(received) == (party == "b")
            for released in received:
                assert released.sender == "active"
                assert released.exchange.phase is Phase.DISCLOSE
                assert list(released.tensors or ()) == ["labels"]
                assert len(released.rows) == 20
        assert (home / "b" / "own.npz").exists()
        assert not (home / "a" / "own.npz").exists()
    assert digests[0] == digests[1]
    assert digests[0]["a"] == digests[0]["c"] != digests[0]["b"]


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    federation(tmp_path).run()
    with pytest.raises(KnowledgeError, match="'active' granted no labels to 'passive'"):
        attack_recorded(tmp_path / "passive", "direction_scoring", None, tmp_path / "e.npz")
    attack_recorded(tmp_path / "active", "half", None, tmp_path / "e.npz")
    with pytest.raises(
        ProtocolError, match=r"shape \(18, 4\): beliefs of shape \(18, 3\) of run 'tiny/run' are scored"
    ):
        score_estimate(tmp_path / "e.npz", tmp_path / "active" / "config.toml")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"attacks": [{"name": "gradient_sign"}]},
            "'gradient_sign' estimates labels, which active 'active' holds",
        ),
        ({"disclose": [{**LABELS, "to": "coordinator"}]}, "the active party grants labels, to one of"),
        (
            {"disclose": [{**LABELS, "rows": 100}]},
            "disclose labels rows = 100 at 'active': there are 72 training rows",
        ),
    ],
)
def test_what_cannot_work_is_refused_before_training(tmp_path: Path, changes: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        federation(tmp_path, **changes).run()


def test_only_labels_of_training_rows_are_delivered_to_a_passive_party(tmp_path: Path) -> None:
    local = federation(tmp_path, disclose=[LABELS], attacks=[])
    local.coordinator.prepare()
    (labels,) = local.links["active"].call(Disclose("tiny/run", 1, "passive"))
    values = labels.tensor("labels")
    cases = [
        (replace(labels, sender="passive"), "auxiliary of 'passive' came where auxiliary of 'active' is due"),
        (
            replace(labels, point=Point.PARAMETERS),
            "parameters of 'active' came where auxiliary of 'active' is due",
        ),
        (replace(labels, tensors={"labels": values[1:]}), "that is not one label per row"),
        (replace(labels, tensors={"labels": values, "more": values}), "that is not one label per row"),
        (
            replace(labels, rows=local.coordinator.aligned.predict[:18], tensors={"labels": values[:18]}),
            "is no train row of run",
        ),
    ]
    for released, sentence in cases:
        with pytest.raises(ProtocolError, match=sentence):
            local.links["passive"].call(Deliver(released))
    local.links["passive"].call(Deliver(labels))
    close(local)
