"""A recorded run of two targets."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from laboratory import THREE, experiment

from vflens.experiments.run.run import run

ATTACKS = ("half_star", "lmmse", "random_guess", "zero")
SETTINGS: dict[str, Any] = {
    "attacks": [{"name": n} for n in ATTACKS],
    "disclose": [{"what": "parameters", "to": "active"}, {"what": "auxiliary", "to": "active", "rows": 10}],
    "defenses": [{"name": "round_scores", "digits": 2, "at": "coordinator"}],
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scenario of two targets that has run; tests that write copy it."""
    what = experiment(tmp_path_factory.mktemp("runs"), parties=THREE, **SETTINGS)
    (home,) = run(what, in_process=True).scenarios
    return home


@pytest.fixture
def home(tmp_path: Path, recorded: Path) -> Path:
    """A copy of its own."""
    return Path(shutil.copytree(recorded, tmp_path / "run"))
