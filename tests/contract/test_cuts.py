"""Federations whose top model begins inside the convolutions, or beside cross layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from laboratory import federation

from vflens.experiments.results.folders import read_party
from vflens.storage.metrics import Name

PASSPORTS = [{"name": "passport", "at": "passive"}, {"name": "passport", "at": "active"}]
TILES: dict[str, Any] = {
    "data": {"name": "digits"},
    "split": {"kind": "image_tiles", "rows": 1, "columns": 2},
    "parties": {"passive": ["a", "b"]},
    "training": {"epochs": 3, "batch_size": 128, "learning_rate": 0.005},
    "attacks": [{"name": "half"}],
}
HALVES: dict[str, Any] = {  # passports take longer to learn
    **TILES,
    "split": {"kind": "image_halves"},
    "parties": {},
    "training": {"epochs": 12, "batch_size": 64, "learning_rate": 0.005},
}
ROWS: dict[str, Any] = {
    "data": {"name": "synthetic", "rows": 300, "features": 8, "classes": 2, "informative": 4},
    "training": {"epochs": 20, "batch_size": 20, "learning_rate": 0.005},
    "attacks": [{"name": "half"}],
}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(
            {**TILES, "model": {"architecture": "cnn", "cut": 1, "combine": "concatenate"}},
            marks=pytest.mark.facts,
        ),
        {**HALVES, "model": {"architecture": "cnn", "cut": 1}, "defenses": PASSPORTS},
        pytest.param(
            {**ROWS, "model": {"architecture": "dcn", "width": 8, "hidden": [8, 8], "cut": 1}},
            marks=pytest.mark.facts,
        ),
    ],
    ids=["side by side, labels alone", "sum, passports", "cross and deep"],
)
def test_a_federation_learns_wherever_its_network_is_cut(tmp_path: Path, changes: dict[str, Any]) -> None:
    local = federation(tmp_path, **changes)
    local.run()
    found = {m.name: m.value for m in read_party(tmp_path / "active").metrics}
    assert found[Name.ACCURACY] > 0.6
