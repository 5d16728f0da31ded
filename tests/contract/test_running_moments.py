"""A party with batch norms that is killed and resumed has the bits of one that was not."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from accidents import REBUILD, Outcome, outcome, rebuild, train_until
from laboratory import federation
from thinned import thinned

from vflens.storage import journal
from vflens.types import Point

SETTINGS: dict[str, Any] = {
    "data": {"name": "digits"},
    "overlap": 0.1,
    "split": {"kind": "image_halves"},
    "model": {"architecture": "cnn", "batch_norm": True},
    "training": {"epochs": 2, "batch_size": 40, "learning_rate": 0.01},
    "limits": {"checkpoint_steps": 3},
    "attacks": [{"name": "wmi", "steps": 2}],
    "disclose": [{"what": "parameters", "to": "active"}],
}
STALE = {**SETTINGS, "aggregator": "active", "training": {**SETTINGS["training"], "staleness": 1}}
PLACES = {"coordinator": SETTINGS, "active, one step stale": STALE}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Outcome]:
    """What a run without any accident ends with."""

    @cache
    def run(place: str) -> Outcome:
        home = tmp_path_factory.mktemp("undisturbed")
        local = federation(home, **PLACES[place])
        local.coordinator.prepare()
        local.coordinator.train()
        return outcome(local, home)

    return run


@pytest.mark.parametrize(("place", "who"), thinned(product(PLACES, ("passive", "active", "everybody"))))
def test_a_party_rebuilt_in_training_changes_nothing(
    tmp_path: Path, undisturbed: Callable[[str], Outcome], place: str, who: str
) -> None:
    """Rebuilt between two checkpoints: the steps since the last one are learned again from the log."""
    local = federation(tmp_path, **PLACES[place])
    local.coordinator.prepare()
    train_until(local, 5)
    REBUILD[who](local)
    if who != "everybody":
        rebuild(local, "coordinator")
    local.coordinator.train()
    assert outcome(local, tmp_path) == undisturbed(place)
    (found,) = (r for r in journal.read(tmp_path / "active" / "transcript") if r.point is Point.PARAMETERS)
    assert found.tensor("5.running_mean").any()
