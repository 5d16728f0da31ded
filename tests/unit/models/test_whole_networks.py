"""The model that an adversary computes with is the one that clients train, under the same names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from vflens.attacks.helpers.gradients.whole import first_linear, last_bias, softmax_network, whole_network
from vflens.errors import KnowledgeError
from vflens.models.families.softmax_regression import SOFTMAX_REGRESSION
from vflens.models.families.split_network import SplitNetwork
from vflens.models.family import ModelFamily
from vflens.models.networks.parameters import from_arrays
from vflens.models.part import Keys, Site, plain
from vflens.models.settings import Training
from vflens.models.whole import WholeModel
from vflens.types import ColumnInfo, Exchange, Phase

SIDE, CLASSES = 6, 3
COLUMNS = tuple(ColumnInfo(f"p{i}", 0.0, 1.0, pixel=divmod(i, SIDE)) for i in range(SIDE**2))


def _trained(model: ModelFamily) -> WholeModel:
    width = model.combined_width([model.width_of(COLUMNS, CLASSES)], CLASSES)
    return WholeModel(
        model,
        Site(
            "a",
            COLUMNS,
            len(COLUMNS),
            CLASSES,
            training=Training(),
            keys=Keys.under(b"1" * 32),
            wrap=plain,
            received=width,
            holds_bias=True,
        ),
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"architecture": "mlp", "hidden": [8], "width": 5},
        {"architecture": "mlp", "width": CLASSES, "trainable_top": False},
        {"architecture": "cnn", "batch_norm": True, "cut": 1},
        {"architecture": "dcn", "hidden": [8], "width": 5, "combine": "concatenate"},
    ],
)
def test_a_whole_network_takes_the_clients_parameters_and_gives_their_scores(settings: Any) -> None:
    network = SplitNetwork(precision="float64", **settings)
    trained = _trained(network)
    parameters = trained.parameters()
    model = whole_network(network, COLUMNS, CLASSES)
    from_arrays(model, parameters)
    x = np.random.default_rng(1).random((4, len(COLUMNS)))
    scores = torch.log_softmax(model.eval()(torch.tensor(x)), dim=1).detach().numpy()
    expected = trained.log_scores(x, Exchange("run", Phase.PREDICT, 0, 0))
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-12)
    assert parameters[last_bias(model)].shape == (CLASSES,)


def test_softmax_regression_is_one_layer() -> None:
    trained, rng = _trained(SOFTMAX_REGRESSION), np.random.default_rng(2)
    trained.take({n: rng.normal(size=p.shape) for n, p in trained.parameters().items()})
    model = softmax_network(trained.parameters())
    x = rng.random((4, len(COLUMNS)))
    scores = torch.log_softmax(model(torch.tensor(x)), dim=1).detach().numpy()
    expected = trained.log_scores(x, Exchange("run", Phase.PREDICT, 0, 0))
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-12)
    assert (last_bias(model), first_linear(model)) == ("bias", "")


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"architecture": "mlp", "hidden": [8]}, "bottom.0"),
        ({"architecture": "dcn"}, "bottom.0.right.0"),
        ({"architecture": "cnn"}, None),
    ],
)
def test_the_layer_that_reads_the_columns_is_found(settings: Any, name: str | None) -> None:
    model = whole_network(SplitNetwork(**settings), COLUMNS, CLASSES)
    assert first_linear(model) == name
    if name is not None:
        read = []
        model.get_submodule(name).register_forward_pre_hook(lambda _, given: read.append(given[0]))
        model(rows := torch.rand(2, len(COLUMNS), dtype=torch.float64))
        assert torch.equal(read[0], rows)


def test_a_last_layer_without_bias_is_refused() -> None:
    with pytest.raises(KnowledgeError, match="the model's last layer has no bias"):
        last_bias(nn.Linear(3, 2, bias=False))
