"""Attacks of a server on what it sees of one client, against rows whose gradients torch's autograd took."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from gradientcases import gradients_of
from thinned import first
from torch import nn

from vflens.attacks.bgi import BlackBoxGradientInversion
from vflens.attacks.dlg import DeepLeakage
from vflens.attacks.first_layer import FirstLayer
from vflens.attacks.helpers.gradients.whole import whole_network
from vflens.attacks.label_restoration import LabelRestoration
from vflens.attacks.wgi import WhiteBoxGradientInversion
from vflens.attacks.wgi_moments import MomentGradientInversion
from vflens.errors import KnowledgeError
from vflens.models.families.split_network import SplitNetwork
from vflens.models.networks.parameters import to_arrays
from vflens.models.networks.passport import PassportLayer
from vflens.score.batches import matched_mse
from vflens.types import Array, ColumnInfo, Estimate, Moments

SIDE, CLASSES = 4, 5
D = SIDE**2
COLUMNS = tuple(ColumnInfo(f"p{i}", 0.0, 1.0, pixel=divmod(i, SIDE)) for i in range(D))
EXACT = 1e-18  # of a mean squared error, from gradients in float64
MLP = SplitNetwork(architecture="mlp", width=40, top=(12,), precision="float64")


def _model(network: SplitNetwork = MLP) -> nn.Module:
    torch.manual_seed(1)
    return whole_network(network, COLUMNS, CLASSES)


def _rows(n: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(2)
    return rng.random((n, D)), rng.permutation(np.arange(n) % CLASSES)


def _view(parameters: dict[str, Array], gradients: dict[str, Array], n: int, **more: Any) -> Any:
    """What the server sees of ``n`` rows; ``gradients`` (m, …) of one round or of granted rows."""
    seen = {
        "target": "client",
        "rows": np.arange(n, dtype=np.int32),
        "round": 0,
        "n_classes": CLASSES,
        "device": "cpu",
        "progress": lambda stage, done, total: None,
        "metadata": lambda: COLUMNS,
        "architecture": lambda: MLP,
        "rounds": 1,
        "parameters": lambda number: parameters,
        "gradient": lambda number: {name: g[0] for name, g in gradients.items()},
        "gradients": lambda: gradients,
    }
    return SimpleNamespace(**seen | more)


def _round(model: nn.Module, x: Array, y: Array, **more: Any) -> Any:
    """The view of a round that trained on ``x`` with labels ``y``."""
    gradients = gradients_of(model, x[None], np.eye(CLASSES)[y][None])
    return _view(to_arrays(model.state_dict()), gradients, len(x), **more)


def _granted(model: nn.Module, x: Array, y: Array, **more: Any) -> Any:
    """The view of granted gradients of ``x``, row by row."""
    gradients = gradients_of(model, x[:, None], np.eye(CLASSES)[y][:, None])
    return _view(to_arrays(model.state_dict()), gradients, len(x), **more)


def _rng() -> np.random.Generator:
    return np.random.default_rng(3)


def _states(estimate: Estimate) -> list[str]:
    return [str(state) for state in estimate.status]


def _changed(view: Any, **changes: Any) -> Any:
    return SimpleNamespace(**vars(view) | changes)


# -- the gradient of a round ------------------------------------------------------------------------------


def test_one_row_follows_from_the_first_layer() -> None:
    x, y = _rows(1)
    found = FirstLayer().reconstruct(_round(_model(), x, y), rng=_rng())
    assert ((found.values - x) ** 2).mean() < EXACT
    assert (_states(found), found.extras["misfit"][0] < 1e-9) == (["ok"], True)


def test_rows_with_units_of_their_own_are_exact_and_the_others_are_marked() -> None:
    x, y = _rows(6)
    found = FirstLayer().reconstruct(_round(_model(), x, y), rng=_rng())
    ok = found.status == "ok"
    assert 1 <= ok.sum() < 6
    assert set(_states(found)) == {"ok", "ambiguous"}
    for row in found.values[ok]:
        assert np.abs(x - row).max(axis=1).min() < 1e-9
    assert (found.values[~ok] == found.values[~ok][0]).all()  # a mean of all that the gradient shows


@pytest.mark.parametrize("classes", [2, CLASSES])
def test_a_batch_of_a_linear_model_leaves_a_mean(classes: int) -> None:
    """With two classes both units show the same one."""
    x, y = _rows(3)
    model = nn.Linear(D, classes, dtype=torch.float64)
    gradients = gradients_of(model, x[None], np.eye(classes)[y % classes][None])
    view = _view(to_arrays(model.state_dict()), gradients, 3, n_classes=classes)
    found = FirstLayer().reconstruct(view, rng=_rng())
    assert set(_states(found)) == {"ambiguous"}
    assert (found.values == found.values[0]).all()


def test_a_convolution_shows_no_row_in_closed_form() -> None:
    cnn = SplitNetwork(architecture="cnn", precision="float64")
    view = _round(_model(cnn), *_rows(1), architecture=lambda: cnn)
    with pytest.raises(KnowledgeError, match="first_layer needs a linear layer"):
        FirstLayer().reconstruct(view, rng=_rng())


def test_a_layer_without_a_gradient_is_refused_in_words() -> None:
    view = _round(_model(), *_rows(1))
    silent = {name: np.zeros_like(g) for name, g in view.gradient(0).items()}
    with pytest.raises(KnowledgeError, match=r"bottom\.0: the gradient in the bias is 0"):
        FirstLayer().reconstruct(_changed(view, gradient=lambda number: silent), rng=_rng())


@pytest.mark.parametrize(("label", "n"), first([("restored", 2), ("learned", 1)]))
def test_deep_leakage_finds_a_batch_up_to_the_order_of_its_rows(label: Any, n: int) -> None:
    x, y = _rows(n)
    found = DeepLeakage(steps=150, label=label).reconstruct(_round(_model(), x, y), rng=_rng())
    assert matched_mse(found.values, x)[0] < EXACT
    assert found.extras["distance"].shape == (n,)


@pytest.mark.facts
def test_deep_leakage_by_cosine_comes_near() -> None:
    x, y = _rows(1)
    attack = DeepLeakage(optimizer="adam", steps=300, starts=2, smoothness=0.0, rate=0.05)
    assert ((attack.reconstruct(_round(_model(), x, y), rng=_rng()).values - x) ** 2).mean() < 1e-3


def test_adam_needs_labels() -> None:
    with pytest.raises(ValueError, match='optimizer = "adam" needs labels'):
        DeepLeakage(optimizer="adam", label="learned")


def test_a_private_bottom_model_is_refused_by_who_needs_it() -> None:
    view = _private(*_rows(1))
    for attack in (FirstLayer(), DeepLeakage()):
        with pytest.raises(KnowledgeError, match=r"'bottom\.0\.bias' stays with 'client'"):
            attack.reconstruct(view, rng=_rng())


def _private(x: Array, y: Array) -> Any:
    """What the server sees of clients that keep their bottom models: a round, and granted gradients."""
    granted = _granted(_model(), x, y)
    return _keeping(_changed(granted, gradient=_round(_model(), x, y).gradient), *_rows(60))


def _keeping(view: Any, known: Array, labels: Array) -> Any:
    """``view`` without the bottom model, with granted rows and labels."""
    rows = np.arange(100, 100 + len(known), dtype=np.int32)

    def top(named: dict[str, Array]) -> dict[str, Array]:
        return {name: array for name, array in named.items() if name.startswith("top.")}

    return _changed(
        view,
        parameters=lambda number: top(view.parameters(number)),
        gradient=lambda number: top(view.gradient(number)),
        auxiliary=lambda: (rows, known),
        known_labels=lambda: (rows[::-1], labels[::-1]),
    )


def test_a_shadow_learns_from_granted_rows_and_labels_in_any_order() -> None:
    """Whose answer is inside the box, and repeats."""
    attack = BlackBoxGradientInversion(steps=20, starts=1, learning_steps=20)
    view = _private(*_rows(2))
    one, other = (attack.reconstruct(view, rng=_rng()) for _ in range(2))
    assert ((one.values >= 0) & (one.values <= 1)).all()
    np.testing.assert_array_equal(one.values, other.values)
    known, (rows, labels) = view.auxiliary(), view.known_labels()
    shuffled = _changed(view, known_labels=lambda: (rows[::-1], labels[::-1]))
    np.testing.assert_array_equal(attack.reconstruct(shuffled, rng=_rng()).values, one.values)
    strangers = _changed(view, known_labels=lambda: (known[0] + 500, labels))
    with pytest.raises(KnowledgeError, match="granted no label of a granted row"):
        attack.reconstruct(strangers, rng=_rng())


@pytest.mark.parametrize(("gradients", "n"), first([("round", 2), ("granted", 4), ("round", 1)]))
def test_with_the_true_bottom_model_for_a_shadow_rows_are_exact(
    gradients: Any, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The top's gradient shows the embedding, of a round in the order of no row."""
    (x, y), model = _rows(n), _model()

    def told(self: Any, view: Any, shadow: nn.Module, *rest: Any) -> None:
        shadow.get_submodule("bottom").load_state_dict(model.get_submodule("bottom").state_dict())

    monkeypatch.setattr(BlackBoxGradientInversion, "_learn", told)
    attack = BlackBoxGradientInversion(gradients=gradients, optimizer="lbfgs", steps=200, starts=6)
    found = attack.reconstruct(_private(x, y), rng=_rng())
    error = matched_mse(found.values, x)[0] if attack.unordered else ((found.values - x) ** 2).mean()
    assert error < EXACT
    assert attack.estimated_round == ("last" if attack.unordered else None)


def _trained() -> tuple[nn.Module, Array, Array]:
    """A model that tells classes of rows apart which are bright at other places, and 100 of these rows."""
    rng, model = np.random.default_rng(5), _model()
    y = np.arange(100) % CLASSES
    x = np.clip(np.random.default_rng(6).random((CLASSES, D))[y] + rng.normal(0, 0.15, (100, D)), 0, 1)
    rows, labels = torch.tensor(x), torch.tensor(y)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(200):
        optimizer.zero_grad()
        torch.autograd.backward(torch.nn.functional.cross_entropy(model(rows), labels))
        optimizer.step()
    return model, x, y


@pytest.mark.facts
def test_a_shadow_that_learned_finds_more_than_one_that_did_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both begin at granted rows of the same label, with the same top."""
    model, x, y = _trained()
    view = _keeping(_granted(model, x[:8], y[:8]), x[8:], y[8:])
    attack = BlackBoxGradientInversion(gradients="granted", steps=100, starts=2)
    learned = attack.reconstruct(view, rng=_rng()).values
    monkeypatch.setattr(BlackBoxGradientInversion, "fit", lambda *given: None)
    empty = attack.reconstruct(view, rng=_rng()).values
    errors = [((found - x[:8]) ** 2).mean() for found in (learned, empty)]
    assert errors[0] < 0.5 * errors[1]


@pytest.mark.parametrize("n", [1, 7])
@pytest.mark.parametrize("private", [False, True])
def test_labels_of_a_batch_are_restored(n: int, private: bool) -> None:
    x, y = _rows(n)
    view = _private(x, y) if private else _round(_model(), x, y)
    found = LabelRestoration().reconstruct(view, rng=_rng())
    assert found.values.sum(axis=0).tolist() == np.bincount(y, minlength=CLASSES).tolist()
    assert found.values.sum(axis=1).tolist() == [1] * n


# -- granted gradients ------------------------------------------------------------------------------------


def test_granted_gradients_give_each_row_in_its_place() -> None:
    x, y = _rows(4)
    found = WhiteBoxGradientInversion(steps=150).reconstruct(_granted(_model(), x, y), rng=_rng())
    assert ((found.values - x) ** 2).mean() < EXACT


def test_single_rows_met_the_running_moments_of_batch_norms() -> None:
    """So a client computes what it grants: there the rows are a fixed point of the descent."""
    norm = SplitNetwork(architecture="cnn", batch_norm=True, precision="float64")
    model, (x, y) = _model(norm).eval(), _rows(3)
    with torch.no_grad():
        for name, moment in model.named_buffers():
            moment.copy_(torch.full_like(moment, 0.3 if name.endswith("mean") else 1.7))
    view = _granted(model, x, y, architecture=lambda: norm)
    attack = WhiteBoxGradientInversion(steps=1, starts=1)
    found = attack.of_rows(view, model, view.gradients(), y, _rng(), first=x[:, None, None])
    assert found.extras["distance"].max() < 1e-20
    np.testing.assert_array_equal(found.values, x)


def test_without_a_passport_the_bias_shows_each_row() -> None:
    x, y = _rows(4)
    view = _granted(_model(), x, y, moments=lambda: Moments(np.full(D, 0.5)))
    found = MomentGradientInversion().reconstruct(view, rng=_rng())
    assert ((found.values - x) ** 2).mean() < EXACT


def _behind_passport(n: int, largest_mean: float) -> tuple[Any, Array]:
    """Granted gradients under one pair of keys; the bias behind the passport has none."""
    model, (x, y) = _model(), _rows(n)
    parameters = to_arrays(model.state_dict())
    layer, rng = model.get_submodule("bottom.0"), np.random.default_rng(4)
    assert isinstance(layer, nn.Linear)
    passport = PassportLayer(
        layer, largest_mean=largest_mean, sigma=1.0, redraw_means=False, order="paper", rng=rng
    )
    passport.rekey(rng)
    model.get_submodule("bottom").register_module("0", passport)
    own = gradients_of(model, x[:, None], np.eye(CLASSES)[y][:, None])
    named = {name.replace(".layer.", "."): g for name, g in own.items() if "coder" not in name}
    parameters["bottom.0.bias"] = np.zeros(layer.out_features)
    return _view(parameters, named, n, moments=lambda: Moments(np.full(D, 0.5))), x


@pytest.mark.parametrize("largest_mean", [2.0, 50.0])
def test_passports_hide_no_row_from_who_knows_the_mean(largest_mean: float) -> None:
    view, x = _behind_passport(30, largest_mean)
    found = MomentGradientInversion().reconstruct(view, rng=_rng())
    assert ((found.values - x) ** 2).mean() < 0.3 * ((x - 0.5) ** 2).mean()


def test_a_passport_is_ignored_or_guessed() -> None:
    view, x = _behind_passport(3, 10.0)
    ignored, guessed = (
        WhiteBoxGradientInversion(steps=15, starts=1, passport=passport).reconstruct(view, rng=_rng())
        for passport in ("none", "random")
    )
    assert ((ignored.values - x) ** 2).mean() > ((x - 0.5) ** 2).mean()
    assert np.isfinite(guessed.values).all()
    assert not np.array_equal(guessed.values, ignored.values)


def test_keys_are_not_found_from_too_few_rows_or_in_another_model() -> None:
    view, _ = _behind_passport(2, 10.0)
    with pytest.raises(KnowledgeError, match="give three rows of four at least"):
        MomentGradientInversion().reconstruct(view, rng=_rng())
    cnn = SplitNetwork(architecture="cnn", precision="float64")
    other = _granted(_model(cnn), *_rows(4), architecture=lambda: cnn, moments=lambda: Moments(np.zeros(D)))
    with pytest.raises(KnowledgeError, match="wgi_moments needs an 'mlp' whose bottom model is one layer"):
        MomentGradientInversion().reconstruct(other, rng=_rng())


def test_settings_of_a_passport_that_is_not_guessed_are_refused() -> None:
    with pytest.raises(ValueError, match=r"sigma = 2\.0: passport = 'none' does not read it"):
        WhiteBoxGradientInversion(sigma=2.0)
