"""A horizontal federation of two clients, whose updates leave with noise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from horizontal import deal, federation, server_of, table
from laboratory import close

TABLES = {"a": table(30, 1), "b": table(17, 2)}
MLP: dict[str, Any] = {
    "model": {"architecture": "mlp", "width": 5, "hidden": [6], "top": [4], "dropout": 0.3},
    "training": {"batch_size": 8, "learning_rate": 0.01},
    "horizontal": {"rounds": 3, "local_epochs": 2},
    "defenses": [{"name": "dp_gaussian", "clip": 0.5}, {"name": "label_dp"}],
    "limits": {"checkpoint_steps": 2},
}
NO_ROWS = np.zeros(0, np.int32)


@pytest.fixture
def local(tmp_path: Path) -> Any:
    made = federation(deal(tmp_path, TABLES, **MLP))
    server_of(made).prepare()
    yield made
    close(made)
