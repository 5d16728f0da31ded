"""Where attacks on embeddings compute: on the device of their party."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from inversionview import recorded_view
from torch import Tensor

from vflens.attacks import inverse_network, moments_only
from vflens.attacks.bmi import BlackBoxInversion
from vflens.attacks.helpers.networks import inversion, own_top
from vflens.attacks.inverse_network import InverseNetwork
from vflens.attacks.moments_only import MomentsOnly
from vflens.attacks.wmi import WhiteBoxInversion
from vflens.attacks.wmi_moments import MomentInversion
from vflens.models.families.split_network import SplitNetwork
from vflens.models.networks.architectures import bottom, top
from vflens.models.networks.parameters import to_arrays
from vflens.plugins.attack import Attack
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, ColumnInfo, Point

COLUMNS = tuple(ColumnInfo(f"p{i}", 0.0, 1.0, pixel=divmod(i, 4)) for i in range(16))
CNN = SplitNetwork(architecture="cnn", top=(3,))
TRAIN, PREDICT = np.arange(30, dtype=np.int32), np.arange(30, 50, dtype=np.int32)


def _view(device: str) -> AdversaryView:
    rng = np.random.default_rng(3)
    x, model = rng.random((50, 16)), bottom(CNN, COLUMNS)
    with torch.no_grad():
        h = model(torch.tensor(x, dtype=torch.float32)).numpy()
    head = to_arrays(dict(top(CNN, h.shape[1], 2).named_parameters()))
    disclosed: Any = {
        Point.PARAMETERS: (TRAIN[:0], to_arrays(dict(model.named_parameters()))),
        Point.AUXILIARY: (TRAIN[:20], {"features": x[:20]}),
    }
    return recorded_view(
        CNN,
        COLUMNS,
        PREDICT,
        trained=[(TRAIN, h[TRAIN])],
        predicted=[(PREDICT, h[PREDICT])],
        disclosed=disclosed,
        device=device,
        own={"labels": np.arange(50) % 2, **{f"network/top.{n}": a for n, a in head.items()}},
    )


class OneStep:
    """L-BFGS, which asks a tensor for its value, which one without numbers has not."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def zero_grad(self) -> None:
        pass

    def step(self, closure: Callable[[], Tensor]) -> None:
        closure()


@pytest.mark.parametrize(
    "attack",
    [
        WhiteBoxInversion(steps=2),
        WhiteBoxInversion(steps=2, passport="random"),
        WhiteBoxInversion(steps=2, passport="joint"),
        MomentInversion(steps=2),
        MomentsOnly(steps=2, draws=10),
        BlackBoxInversion(steps=2, learner="adam", learning_steps=2),
        BlackBoxInversion(steps=2, learn="top"),
        InverseNetwork(learning_steps=2, hidden=2),
    ],
    ids=lambda a: type(a).__name__,
)
def test_models_rows_and_descents_are_on_the_device_of_the_party(
    monkeypatch: pytest.MonkeyPatch, attack: Attack
) -> None:
    """Torch's "meta" stands for the GPU: it holds no numbers, and refuses what mixes it with the processor's
    tensors.
    """
    asked, ends = set(), set()

    def placed(name: str) -> torch.device:
        asked.add(name)
        return torch.device("meta")

    def array(tensor: Tensor) -> Array:
        ends.add(tensor.device.type)
        return np.zeros(tensor.shape)

    for module in (inversion, own_top, inverse_network):
        monkeypatch.setattr(module, "placed", placed)
    for module in (inversion, inverse_network, moments_only):
        monkeypatch.setattr(module, "array", array)
    monkeypatch.setattr(torch.optim, "LBFGS", OneStep)
    estimate = attack.reconstruct(_view("cuda"), rng=np.random.default_rng(1))
    assert estimate.values.shape == (20, 16)
    assert asked == {"cuda"}
    assert ends == {"meta"}
