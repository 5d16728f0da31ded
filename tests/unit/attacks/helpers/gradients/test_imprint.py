"""The imprint of a malicious server on rows of two clients, whose gradients torch's autograd took."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from alone import alone_in_bins
from gradientcases import gradients_of

from vflens.attacks.helpers.gradients.whole import whole_network
from vflens.attacks.imprint import Imprint
from vflens.errors import KnowledgeError
from vflens.models.families.softmax_regression import SoftmaxRegression
from vflens.models.families.split_network import SplitNetwork
from vflens.models.networks.parameters import from_arrays, to_arrays
from vflens.types import Array, ColumnInfo, Estimate

D, CLASSES = 16, 5
COLUMNS = tuple(ColumnInfo(f"c{i}", 0.0, 1.0) for i in range(D))
MLP = SplitNetwork(architecture="mlp", width=60, top=(12,), precision="float64")
AGREED: Any = SimpleNamespace(model=MLP, columns=COLUMNS, n_classes=CLASSES)


def started() -> dict[str, Array]:
    """The parameters of a new model."""
    torch.manual_seed(1)
    return to_arrays(whole_network(MLP, COLUMNS, CLASSES).state_dict())


def attacked(parameters: dict[str, Array], parts: list[Array], *, single: bool = False) -> Estimate:
    """The attack on clients with the rows of ``parts``, each with the same weight; ``single``: the gradient
    is what two models in float32 say, before and after a step of .1.
    """
    model = whole_network(MLP, COLUMNS, CLASSES)
    from_arrays(model, parameters)
    rng, summed = np.random.default_rng(3), {name: np.zeros(v.shape) for name, v in parameters.items()}
    for x in parts:
        labels = np.eye(CLASSES)[rng.integers(CLASSES, size=len(x))]
        for name, g in gradients_of(model, x[None], labels[None]).items():
            summed[name] += g[0] / len(parts)
    if single:
        before = {name: parameters[name].astype(np.float32) for name in summed}
        after = {name: (before[name] - 0.1 * g).astype(np.float32) for name, g in summed.items()}
        summed = {name: (before[name] - after[name]).astype(np.float64) / 0.1 for name in summed}
    shares = {f"client-{i}": 1 / len(parts) / len(x) for i, x in enumerate(parts)}
    view: Any = SimpleNamespace(
        target="client-0",
        rows=np.arange(sum(map(len, parts)), dtype=np.int32),
        round=0,
        n_classes=CLASSES,
        device="cpu",
        metadata=lambda: COLUMNS,
        architecture=lambda: MLP,
        parameters=lambda number: parameters,
        mean_gradient=lambda number: (summed, shares),
    )
    return Imprint().reconstruct(view, rng=np.random.default_rng(0))


@pytest.fixture(scope="module")
def parts() -> list[Array]:
    rng = np.random.default_rng(2)
    return [rng.random((15, D)), rng.random((9, D))]


def test_the_rows_that_are_alone_in_a_bin_are_exact_and_marked_and_no_others(parts: list[Array]) -> None:
    """Which they are follows from the planted biases and the rows themselves."""
    parameters, x = Imprint().planted(AGREED, started()), np.concatenate(parts)
    found = attacked(parameters, parts)
    alone = alone_in_bins(x @ parameters["bottom.0.weight"][0], -parameters["bottom.0.bias"])
    ok = found.status == "ok"
    assert 8 < ok.sum() == len(alone) < len(x)
    nearest = np.abs(x[:, None] - found.values[ok]).max(axis=2)
    assert sorted(nearest.argmin(axis=0)) == alone.tolist()
    assert nearest.min(axis=0).max() < 1e-9
    assert set(found.status[~ok]) == {"ambiguous"}
    assert np.abs(x[:, None] - found.values[~ok]).max(axis=2).min() > 1e-4


def test_models_in_single_precision_show_most_of_them(parts: list[Array]) -> None:
    """Beside the large parameters of a measure of full size, an update would be lost in rounding."""
    parameters = Imprint().planted(AGREED, started())
    exact, rounded = (attacked(parameters, parts, single=single).status == "ok" for single in (False, True))
    assert rounded.sum() > 0.6 * exact.sum()


def test_bins_are_by_default_those_of_independent_uniform_columns() -> None:
    """Each of four parts of the bins gets a quarter of the rows, up to four deviations."""
    parameters, x = Imprint().planted(AGREED, started()), np.random.default_rng(6).random((4000, D))
    ends = -parameters["bottom.0.bias"].reshape(4, -1)[:, 0]
    ends[0] = -np.inf
    counts = np.histogram(x @ parameters["bottom.0.weight"][0], [*ends, np.inf])[0]
    assert np.abs(counts - 1000).max() < 4 * (4000 * 0.25 * 0.75) ** 0.5


def test_without_its_model_nothing_is_found(parts: list[Array]) -> None:
    found = attacked(started(), parts)
    assert set(found.status) == {"ambiguous"}


def test_a_model_keeps_its_names_shapes_and_types() -> None:
    before = {name: value.astype(np.float32) for name, value in started().items()}
    after = Imprint().planted(AGREED, before)
    assert {n: (v.shape, v.dtype) for n, v in before.items()} == {
        n: (v.shape, v.dtype) for n, v in after.items()
    }
    assert (after["bottom.0.weight"] == after["bottom.0.weight"][0, 0]).all()
    assert (after["top.3.weight"] == before["top.3.weight"]).all()


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (SplitNetwork(architecture="dcn"), "does not begin with a linear layer, a ReLU"),
        (MLP.model_copy(update={"hidden": (9,), "dropout": 0.1}), "or it has dropout"),
        (SoftmaxRegression(), "softmax regression"),
    ],
)
def test_another_model_is_refused(model: Any, reason: str) -> None:
    with pytest.raises(KnowledgeError, match=reason):
        Imprint().planted(SimpleNamespace(**vars(AGREED) | {"model": model}), {})
