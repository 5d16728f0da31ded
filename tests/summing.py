"""A horizontal federation whose server gets masked updates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from horizontal import deal, federation, server_of, table
from laboratory import close
from oneprocess import LocalFederation

from vflens.types import Array, Point, Released

TABLES = {name: table(rows, seed) for seed, (name, rows) in enumerate({"a": 30, "b": 17, "c": 23}.items())}
FOUR = {**TABLES, "d": table(20, 9)}
SECURE: dict[str, Any] = {
    "training": {"batch_size": 8, "learning_rate": 0.01},
    "horizontal": {"rounds": 3, "secure_aggregation": True},
    "secure_aggregation": True,  # at the clients
    "limits": {"checkpoint_steps": 2},
}
NO_ROWS = np.zeros(0, np.int32)


def masked(local: LocalFederation) -> list[Released]:
    """The updates that the server received."""
    return list(server_of(local).transcript.select(Point.MASKED_UPDATE))


def numbers(released: Released) -> Array:
    """Its numbers modulo 2⁶⁴."""
    return released.tensor("masked").view(np.uint64)


@pytest.fixture
def local(tmp_path: Path) -> Any:
    made = federation(
        deal(tmp_path, FOUR, **{**SECURE, "horizontal": {**SECURE["horizontal"], "participants": 3}})
    )
    server_of(made).prepare()
    yield made
    close(made)
