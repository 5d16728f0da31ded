"""In protected training features are opened once, in the chunks that all parties know."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from laboratory import NOTHING, THREE, federation

from vflens.errors import ProtocolError
from vflens.protocol.acts import Step
from vflens.protocol.vertical.shares import SharedRun
from vflens.types import Exchange, Phase, Point, Released

TRAINING = {"epochs": 1, "batch_size": 20, "learning_rate": 0.1, "optimizer": "sgd", "protection": "shares"}


@pytest.mark.parametrize("party", ["a", "b"])
@pytest.mark.parametrize(
    ("number", "rows"),
    [(1, [0, 1]), (2**62, [0, 1]), (0, [0]), (0, [1, 0]), (0, [0, 0]), (0, []), (-1, []), (2**62, [])],
    ids=str,
)
def test_features_are_opened_chunk_by_chunk(tmp_path: Path, party: str, number: int, rows: list[int]) -> None:
    """Both ends log each share once per number: numbers without end would fill the disk."""
    local = federation(tmp_path, training=TRAINING, parties=THREE, attacks=[])
    local.coordinator.prepare()
    run, exchange = SharedRun(local.coordinator.aligned), Exchange("tiny/run", Phase.DISCLOSE, 1, number)
    halves = np.array_split(run.federation.train, 2)
    asked = np.concatenate([NOTHING, *(halves[i] for i in rows)])
    share = {"features share": np.zeros((len(asked), run.width), np.int64)}
    received = Released("active", exchange, Point.SHARES, asked, tensors=share)
    with pytest.raises(ProtocolError, match=f"^shares {number} are of other rows: ask for the training rows"):
        local.active.links[party].call(Step(exchange, asked, received))
    assert not list(local.passive[party].transcript)
