"""The attack that takes all rows of a round from its first layer: in a view, and in the server of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gradientcases import gradients_of
from horizontal import deal, federation, table
from test_round_attacks import COLUMNS, _changed, _model, _round, _rows, _view
from torch import nn

import vflens.attacks.exact_inversion
from vflens.attacks.exact_inversion import ExactInversion
from vflens.attacks.helpers.gradients.whole import whole_network
from vflens.errors import KnowledgeError
from vflens.experiments.results.folders import read_party
from vflens.models.families.split_network import SplitNetwork
from vflens.models.networks.parameters import to_arrays
from vflens.numerics.gradients.exact_batch import ExactBatch
from vflens.score.batches import matched_mse
from vflens.tables.table import Table
from vflens.types import Array, ColumnInfo, Estimate

EXACT = 1e-18  # of a mean squared error, from gradients in float64


def _seen(model: nn.Module, n: int, **more: Any) -> Any:
    view = _round(model, *_rows(n), steps=1, **more)
    first = view.gradient

    def gradient(number: int, *, several: bool = False) -> Mapping[str, Array]:
        found: Mapping[str, Array] = first(number)
        return found

    return _changed(view, gradient=gradient)


def _found(view: Any) -> Estimate:
    return ExactInversion().reconstruct(view, rng=np.random.default_rng(3))


@pytest.mark.parametrize("n", [1, 5, 7])
def test_every_row_of_a_round_is_exact_and_proven(n: int) -> None:
    found = _found(_seen(_model(), n))
    assert matched_mse(found.values, _rows(n)[0])[0] < EXACT
    assert {str(s) for s in found.status} == {"ok"}
    assert found.extras["misfit"].max() < 1e-9


def test_what_is_not_proven_is_a_blind_guess() -> None:
    found = _found(_seen(_model(), 30))
    assert {str(s) for s in found.status} == {"not_converged"}
    assert (found.values == 0.5).all()
    assert found.values.shape == (30, len(COLUMNS))


def test_a_row_that_rounding_may_move_is_not_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its values stand, and so do the states of the others."""
    x = _rows(3)[0]
    given = ExactBatch(x, 1e-9, np.array([1e-6, 2e-3, 1e-3]))
    monkeypatch.setattr(vflens.attacks.exact_inversion, "exact_batch", lambda *seen, **more: given)
    found = _found(_seen(_model(), 3))
    assert [str(s) for s in found.status] == ["ok", "not_converged", "ok"]
    np.testing.assert_array_equal(found.values, x)
    np.testing.assert_array_equal(found.extras["bound"], given.bound)


def test_one_layer_of_two_classes_behind_the_relu_is_used() -> None:
    network = SplitNetwork(architecture="mlp", width=40, top=(), precision="float64")
    torch.manual_seed(1)
    model, (x, y) = whole_network(network, COLUMNS, 2), _rows(8)
    x = x.round()
    seen = {n: g[0] for n, g in gradients_of(model, x[None], np.eye(2)[y % 2][None]).items()}
    more = {"n_classes": 2, "architecture": lambda: network, "gradient": lambda number, several: seen}
    found = _found(_view(to_arrays(model.state_dict()), {}, 8, steps=1, **more))
    assert matched_mse(found.values, x)[0] < EXACT


def test_a_model_without_a_relu_behind_its_first_layer_is_refused() -> None:
    lenet = SplitNetwork(architecture="cnn", precision="float64")
    view = _seen(_model(lenet), 1, architecture=lambda: lenet)
    with pytest.raises(KnowledgeError, match="no ReLU stands behind a first linear layer"):
        _found(view)


def _of_letters(rows: int, seed: int) -> Table:
    """A table of twenty columns of 0 and 1."""
    columns = tuple(ColumnInfo(f"c{i}", 0.0, 1.0) for i in range(20))
    x = np.random.default_rng(seed).integers(0, 2, (rows, len(columns))).astype(float)
    of_classes: Table = table(rows, seed)
    return replace(of_classes, columns=columns, features=x)


@pytest.mark.parametrize(("steps", "rows", "l2"), [(1, 5, 0.01), (2, 2, 0.01), (3, 1, 0.0)])
def test_the_server_of_a_run_reads_one_step_and_several(
    tmp_path: Path, steps: int, rows: int, l2: float
) -> None:
    """The penalty's part of several steps is known to the last bit."""
    network = {"family": "split_network", "architecture": "mlp", "width": 40, "top": [20]}
    more: dict[str, Any] = {
        "model": {**network, "precision": "float64"},
        "training": {"optimizer": "sgd", "learning_rate": 0.01, "batch_size": rows, "l2": l2},
        "horizontal": {"rounds": 1, "local_steps": steps},
    }
    tables = {name: _of_letters(30, seed) for seed, name in enumerate(("a", "b"), start=1)}
    federation(deal(tmp_path, tables, attacks=[{"name": "exact_inversion"}], **more)).run()
    facts = read_party(tmp_path / "server").metrics
    errors = [m.value for m in facts if (m.name, m.attack) == ("matched_mse", "exact_inversion")]
    assert len(errors) == 2
    assert max(errors) < EXACT
