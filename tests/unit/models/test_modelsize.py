"""What a model takes is known before it is built: counted in torch's own modules."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

from vflens.models.families.softmax_regression import SOFTMAX_REGRESSION
from vflens.models.families.split_network import SplitNetwork, bottom_size, top_size
from vflens.models.family import ModelFamily
from vflens.models.networks.architectures import bottom, top
from vflens.models.settings import Training
from vflens.models.size import Size
from vflens.protocol.model_size import memory, widest
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.types import ColumnInfo, PartyInfo, Role


def _pixels(height: int, width: int) -> tuple[ColumnInfo, ...]:
    return tuple(ColumnInfo(f"p{i}", pixel=(i // width, i % width)) for i in range(height * width))


def _counted(module: torch.nn.Module, inputs: int) -> Size:
    """Parameters, and numbers per row that its layers give, as torch has them."""
    seen: list[int] = []
    for layer in module.modules():
        if not list(layer.children()) and not isinstance(layer, torch.nn.Flatten):  # a view
            layer.register_forward_hook(lambda m, i, out: seen.append(out.numel()))
    with torch.no_grad():
        module(torch.zeros(1, inputs))
    return Size(sum(p.numel() for p in module.parameters()), sum(seen))


@pytest.mark.parametrize("shape", [(12, 12), (13, 20), (28, 14)])
@pytest.mark.parametrize(
    "settings",
    [
        {"width": 9},
        {"width": 9, "hidden": (7, 30), "dropout": 0.5},
        {"architecture": "cnn"},
        {"architecture": "lenet"},
    ],
)
def test_a_bottom_is_as_large_as_computed(settings: dict[str, Any], shape: tuple[int, int]) -> None:
    network, columns = SplitNetwork(**{"architecture": "mlp", **settings}), _pixels(*shape)
    size, counted = bottom_size(network, columns), _counted(bottom(network, columns), len(columns))
    assert size.parameters == counted.parameters
    assert counted.outputs <= size.outputs <= 3 * counted.outputs


@pytest.mark.parametrize("hidden", [(), (5,), (20, 40)])
@pytest.mark.parametrize("architecture", ["mlp", "cnn"])
def test_a_top_is_as_large_as_computed(architecture: Any, hidden: tuple[int, ...]) -> None:
    network = SplitNetwork(architecture=architecture, top=hidden)
    size, counted = top_size(network, (11,), 3), _counted(top(network, 11, 3), 11)
    assert size.parameters == counted.parameters
    assert counted.outputs <= size.outputs <= 3 * counted.outputs + 11


def _federation(model: ModelFamily, **training: int) -> VerticalAgreement:
    parties = (
        PartyInfo("a", Role.PASSIVE, columns=_pixels(1, 4)),
        PartyInfo("b", Role.PASSIVE, columns=_pixels(1, 6)),
        PartyInfo("active", Role.ACTIVE, columns=_pixels(1, 5), n_classes=3),
    )
    train, predict = np.arange(80, dtype=np.int32), np.arange(80, 100, dtype=np.int32)
    return VerticalAgreement(
        run="run",
        parties=parties,
        rows=100,
        train=train,
        predict=predict,
        training=Training.model_validate(training),
        lab=True,
        model=model,
    )


def _part(federation: VerticalAgreement, party: PartyInfo) -> Size:
    peers = [p.columns for p in federation.passive]
    return federation.model.part_size(party.role, party.columns, peers, federation.n_classes)


def test_each_party_holds_its_part() -> None:
    plain = _federation(SOFTMAX_REGRESSION)
    assert [_part(plain, p).parameters for p in plain.parties] == [3 * 5, 3 * 7, 3 * 6]
    network = SplitNetwork(architecture="mlp", width=8, hidden=(30,), top=(10,), combine="concatenate")
    split = _federation(network)
    layers = ([4, 30, 8], [6, 30, 8], [5, 30, 8], [24, 10, 3])
    a, b, bottom_, top_ = (sum(m * n + n for m, n in pairwise(widths)) for widths in layers)
    assert [_part(split, p).parameters for p in split.parties] == [a, b, bottom_ + top_]
    assert widest(split) == 30
    assert widest(plain) == 3


def test_memory_grows_with_rows_parameters_and_batch() -> None:
    party = _federation(SOFTMAX_REGRESSION).parties[0]
    assert (
        memory(_federation(SOFTMAX_REGRESSION, batch_size=10), party) == 100 * 4 * 16 + 15 * 32 + 10 * 3 * 16
    )
    wide = SplitNetwork(architecture="mlp", width=8192, hidden=(65536,) * 3)
    assert memory(_federation(wide, batch_size=1), party) > 32 * 2 * 65536**2
    assert memory(_federation(wide, batch_size=99), party) == memory(_federation(wide, batch_size=80), party)
