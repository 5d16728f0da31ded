"""A family of models from another package that clients train in rounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accidents import over_grpc
from horizontal import deal, federation, scaled, server_of, table
from laboratory import close
from stubparty import short_folder
from thirdfamily import importable, installed

from vflens.errors import ConfigError
from vflens.experiments.results.record import read_run
from vflens.storage.metrics import Name

_FIXTURES = (importable, installed)  # used by name
TABLES = {"a": table(60, 1), "b": table(31, 2)}
SETTINGS: dict[str, Any] = {
    "model": {"family": "one_hot_regression", "height": 2.0},
    "training": {"optimizer": "sgd", "batch_size": 64, "learning_rate": 0.5, "l2": 0.0},
}


@pytest.mark.usefixtures("importable")
def test_its_rounds_are_gradient_descent_on_the_rows_of_all() -> None:
    """One step a round on all rows of a client: a mean by rows is the step on the rows of all."""
    with short_folder() as folder:
        local = federation(deal(folder, TABLES, **SETTINGS, horizontal={"rounds": 200}))
        with over_grpc(local):
            local.run()
        learned = server_of(local).parameters
        close(local)
        accuracy = read_run(folder).utility[Name.ACCURACY]
    x, y = (np.concatenate(of) for of in zip(*map(scaled, TABLES.values()), strict=True))
    inputs = np.column_stack([x, np.ones(len(x))])
    weights = np.zeros((3, 5))
    for _ in range(200):
        weights -= 0.5 * 2 / len(x) * (inputs @ weights.T - 2 * y).T @ inputs
    np.testing.assert_allclose(learned["weight"], weights[:, :4], rtol=1e-9)
    np.testing.assert_allclose(learned["bias"], weights[:, 4], rtol=1e-9)
    assert accuracy > 0.5


@pytest.mark.usefixtures("importable")
@pytest.mark.parametrize("method", ["lg_fedavg", "splitfed"])
def test_a_method_that_cuts_models_is_refused(tmp_path: Path, method: str) -> None:
    files = deal(tmp_path / "run", TABLES, **SETTINGS, horizontal={"rounds": 2, "method": method})
    words = f"'{method}' needs bottom and top models, one-hot regression has none: choose 'fedavg' or a split"
    with pytest.raises(ConfigError, match=words):
        federation(files)
