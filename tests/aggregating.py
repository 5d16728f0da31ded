"""A federation in which the active party aggregates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from laboratory import THREE, close, federation
from oneprocess import LocalFederation

MODEL = {"architecture": "mlp", "width": 6, "hidden": [8], "top": [7], "dropout": 0.2}
SETTINGS: dict[str, Any] = {
    "model": MODEL,
    "training": {"epochs": 3, "batch_size": 20, "learning_rate": 0.01},
    "parties": THREE,
    "attacks": [{"name": "wmi", "steps": 5}],
    "disclose": [{"what": "parameters", "to": "active"}],
    "defenses": [{"name": "dp_laplace", "at": "b"}],
}


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalFederation]:
    """Aligned, not trained."""
    made = federation(tmp_path, **SETTINGS, aggregator="active")
    made.coordinator.prepare()
    yield made
    close(made)
