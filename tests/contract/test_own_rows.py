"""A party's own rows in its adversary's view: its own masks hide nothing from itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from laboratory import close, federation
from splitcases import MODEL

from vflens.protocol.checks import MODEL_VERSION
from vflens.types import Exchange, Phase

BOTH = [{"name": "instahide", "at": at} for at in ("passive", "active")]
THIEF = {"name": "pmc", "at": "passive"}


def test_a_passive_party_sees_its_own_rows_without_its_masks(tmp_path: Path) -> None:
    """What leaves it is masked, and so are its own embeddings; its table is its own."""
    settings = {"model": MODEL, "disclose": [{"what": "labels", "to": "passive", "rows": 9}]}
    local = federation(tmp_path, defenses=BOTH, attacks=[THIEF], **settings)
    local.coordinator.prepare()
    local.coordinator.train()
    predicting = Exchange("tiny/run", Phase.PREDICT, MODEL_VERSION, 0)
    for party in (local.passive["passive"], local.active):
        rows = np.arange(len(party.run.inputs), dtype=np.int32)
        plain, masked = party.run.inputs[rows], party.inputs_of(rows, predicting)
        assert np.abs(plain - masked).max() > 0.1
        own = party.adversary.own()
        np.testing.assert_array_equal(own["features"], plain if party.name == "passive" else masked)
    passive = local.passive["passive"]
    with torch.no_grad():
        masked = passive.adversary.own_model()(torch.tensor(passive.inputs_of(rows, predicting)).float())
    np.testing.assert_allclose(passive.adversary.own()["embeddings"], masked, rtol=1e-6, atol=1e-9)
    close(local)
