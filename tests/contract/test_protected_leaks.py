"""What a model that was trained on shares leaks: its predictions, as those of one trained in the clear."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from laboratory import federation

from vflens.experiments.results.record import read_run
from vflens.experiments.results.results import Result

RATE = 0.5
TRAINING = {"epochs": 20, "batch_size": 20, "optimizer": "sgd"}
SETTINGS: dict[str, Any] = {
    "data": {"name": "synthetic", "rows": 300, "features": 8, "classes": 2, "informative": 6},
    "disclose": [
        {"what": "parameters", "to": "active"},
        {"what": "moments", "to": "active"},
    ],
    "attacks": [{"name": name} for name in ("half", "half_star", "rcc1", "rcc2", "lmmse")],
}
ON_SHARES = {**TRAINING, "learning_rate": RATE, "protection": "shares"}
#: Of two classes softmax moves both rows of its parameters, and their difference twice as fast.
IN_THE_CLEAR = {**TRAINING, "learning_rate": RATE / 2}
LABELS = [{"at": "coordinator", "name": "label_only"}]


def errors(home: Path, training: dict[str, Any], defenses: Any = ()) -> dict[str, Result]:
    """Attack → its result on the prediction rows."""
    federation(home, **SETTINGS, training=training, defenses=defenses).run()
    return {r.attack: r for r in read_run(home).results if r.scored_set == "predict"}


@pytest.mark.parametrize("defenses", [(), LABELS], ids=["open scores", "labels only"])
def test_the_papers_attacks_find_what_they_find_after_training_in_the_clear(
    tmp_path: Path, defenses: Any
) -> None:
    shares = errors(tmp_path / "shares", ON_SHARES, defenses)
    clear = errors(tmp_path / "clear", IN_THE_CLEAR, defenses)
    assert shares.keys() == clear.keys() >= {"half_star", "rcc1", "rcc2", "lmmse"}
    for attack, found in shares.items():
        assert found.mse == pytest.approx(clear[attack].mse, rel=0.02), attack
        assert found.half_width == pytest.approx(clear[attack].half_width, rel=0.1), attack


def test_open_scores_leak_and_labels_hide(tmp_path: Path) -> None:
    scores = errors(tmp_path / "scores", ON_SHARES)
    labels = errors(tmp_path / "labels", ON_SHARES, LABELS)
    assert scores["lmmse"].better
    assert scores["half_star"].mse < scores["half"].mse
    assert not labels["lmmse"].better
