"""Attacks that know of a passport: what they find where the key can be found, and where nothing is hidden."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from inversionview import inversion_view
from thinned import first

from vflens.attacks.helpers.networks.exchanges import signs
from vflens.attacks.helpers.networks.passports import GuessedPassport, behind
from vflens.attacks.wmi import WhiteBoxInversion
from vflens.attacks.wmi_moments import MomentInversion
from vflens.errors import KnowledgeError
from vflens.models.families.split_network import SplitNetwork
from vflens.models.networks.architectures import bottom
from vflens.models.networks.layers import learn_moments
from vflens.models.networks.parameters import to_arrays
from vflens.models.networks.passport import PassportLayer, passport_place, with_passport
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, ColumnInfo

COLUMNS = tuple(ColumnInfo(f"p{i}", 0.0, 1.0, pixel=(i // 4, i % 4)) for i in range(16))
CNN = SplitNetwork(architecture="cnn", precision="float64")
LINEAR = SplitNetwork(architecture="mlp", width=32, precision="float64")


#: As the authors' code has the layer: its batch norm predicts with the moments of rows that it learned from.
AUTHORS: dict[str, Any] = {"normalise": "authors", "order": "pool_first", "keys": "fixed"}


def _world(network: SplitNetwork, *, defended: bool, **layer_has: Any) -> tuple[Array, AdversaryView]:
    """Rows, and a view that was granted others: equal in distribution, no pair known.

    A linear bottom's are the same rows in another order: its answer does not depend on where it starts.
    """
    rng = np.random.default_rng(4)
    x = rng.random((30, 16)) ** 3  # skewed, so that a channel under −γ looks different
    torch.manual_seed(6)
    model = bottom(network, COLUMNS)
    granted = rng.permutation(x) if network is LINEAR else rng.random((600, 16)) ** 3
    place = passport_place(model, at_top=False)
    assert place is not None
    layer: Any = model.get_submodule(place)
    with torch.no_grad():
        layer.bias.zero_()  # as a passport does
    disclosed = to_arrays(dict(model.named_parameters()))
    if defended:
        settings: Any = {"largest_mean": 10.0, "sigma": 1.0, "redraw_means": False, "order": "paper"}
        passport = PassportLayer(layer, **{**settings, **layer_has}, rng=np.random.default_rng(8))
        passport.rekey(np.random.default_rng(9))
        model = with_passport(model, place, passport)
        for _ in range(50 if layer_has else 0):
            model(torch.tensor(rng.random((100, 16)) ** 3))
            learn_moments(model)
        model.eval()
    with torch.no_grad():
        h = model(torch.tensor(x)).numpy()
    view = inversion_view(network, COLUMNS, embeddings=h, disclosed=disclosed, granted=granted)
    return x, view


def _error(attack: WhiteBoxInversion | MomentInversion, x: Array, view: AdversaryView) -> float:
    return float(((attack.reconstruct(view, rng=np.random.default_rng(1)).values - x) ** 2).mean())


SETTINGS: dict[str, Any] = {"smoothness": 0.0, "steps": 150}


def test_a_key_that_serves_all_rows_is_found_from_their_distribution() -> None:
    """A linear bottom: the attack that ignores the passport errs more than a blind guess, the one that
    estimates γ and β is exact.
    """
    x, view = _world(LINEAR, defended=True)
    assert _error(WhiteBoxInversion(**SETTINGS), x, view) > x.var(axis=0).mean()
    assert _error(MomentInversion(**SETTINGS), x, view) < 1e-3


@pytest.mark.facts
def test_a_convolution_behind_a_passport_gives_away_what_it_does_without_one() -> None:
    """But for the channels that γ and β switch off."""
    undefended = _error(WhiteBoxInversion(**SETTINGS), *_world(CNN, defended=False))
    x, view = _world(CNN, defended=True)
    assert _error(WhiteBoxInversion(**SETTINGS), x, view) > 3 * undefended
    assert _error(MomentInversion(**SETTINGS), x, view) < 1.3 * undefended


@pytest.mark.parametrize("network", first([LINEAR, CNN]), ids=lambda n: n.architecture)
def test_the_authors_layer_gives_away_what_it_does_without_one(network: SplitNetwork) -> None:
    """In predictions its batch norm is a scale and a shift more, and tanh one of another size."""
    undefended = _error(WhiteBoxInversion(**SETTINGS), *_world(network, defended=False))
    x, view = _world(network, defended=True, **AUTHORS)
    ignored = _error(WhiteBoxInversion(**SETTINGS), x, view)
    assert ignored > 3 * undefended + 0.05
    assert _error(MomentInversion(**SETTINGS), x, view) < 1.5 * undefended + 1e-3
    assert _error(WhiteBoxInversion(passport="joint", **SETTINGS), x, view) < ignored


@pytest.mark.parametrize("network", first([LINEAR, CNN]), ids=lambda n: n.architecture)
def test_where_there_is_no_passport_the_estimate_finds_none(network: SplitNetwork) -> None:
    """It errs no more than the attack that takes none to be there; less, where its starts are nearer."""
    x, view = _world(network, defended=False)
    plain = _error(WhiteBoxInversion(**SETTINGS), x, view)
    assert _error(MomentInversion(**SETTINGS), x, view) < plain + 1e-3


def test_learning_the_key_with_the_rows_helps_and_guessing_it_does_not() -> None:
    x, view = _world(CNN, defended=True)
    errors = {
        mode: _error(WhiteBoxInversion(passport=mode, **SETTINGS), x, view)
        for mode in ("none", "random", "joint")
    }
    assert errors["joint"] < 0.5 * errors["none"]
    assert errors["random"] > errors["joint"]


def test_a_guess_is_drawn_from_the_given_stream() -> None:
    _, view = _world(CNN, defended=True)
    attack = WhiteBoxInversion(passport="random", steps=20)
    first, second, other = (
        attack.reconstruct(view, rng=np.random.default_rng(seed)).values for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, second)
    assert np.abs(first - other).max() > 0.01


def test_a_layer_that_is_not_there_is_named() -> None:
    _, view = _world(CNN, defended=True)
    with pytest.raises(
        KnowledgeError, match=r"layer '9' is no linear or convolution layer .* name one of \['1', '4'\]"
    ):
        WhiteBoxInversion(passport="joint", layer="9").reconstruct(view, rng=np.random.default_rng(1))


@pytest.mark.parametrize("network", [CNN, LINEAR], ids=lambda n: n.architecture)
def test_a_passport_that_is_guessed_begins_as_none_at_all(network: SplitNetwork) -> None:
    """The layer's own bias included: an undefended target has one."""
    torch.manual_seed(6)
    model, x = bottom(network, COLUMNS).eval(), torch.rand(5, 16, dtype=torch.float64)
    with torch.no_grad():
        undefended = model(x)
        torch.testing.assert_close(behind(model, None, GuessedPassport)(x), undefended)


def test_the_signs_of_a_known_scale_are_found_behind_a_linear_layer() -> None:
    """Inputs are symmetric around ½, so that no number's own distribution tells the sign of its scale."""
    rng = np.random.default_rng(11)
    x, granted = rng.random((80, 16)), rng.random((60, 16))
    torch.manual_seed(6)
    model = bottom(LINEAR, COLUMNS)
    disclosed = to_arrays(dict(model.named_parameters()))
    disclosed["0.bias"] = np.zeros(32)
    scale, shift = rng.uniform(0.3, 2, 32) * rng.choice([-1, 1], 32), rng.normal(size=32)
    g, h = granted @ disclosed["0.weight"].T, x @ disclosed["0.weight"].T * scale + shift
    found = signs(torch.tensor(g), torch.tensor(h), 32).numpy()
    assert abs((found * np.sign(scale)).sum()) == 32  # all of them, but for one sign of all
    view = inversion_view(LINEAR, COLUMNS, embeddings=h, disclosed=disclosed, granted=granted)
    assert _error(MomentInversion(**SETTINGS), x, view) < 0.1 * x.var(axis=0).mean()


# -- FedAdOb's own white-box inversion ---------------------------------------------------------------------

PAPER: dict[str, Any] = {"start": "zero", "smoothness": 0.1, "smoothness_of": "absolute", "box": False}


def _first_steps(view: AdversaryView, steps: int, **settings: Any) -> Array:
    return WhiteBoxInversion(steps=steps, **settings).reconstruct(view, rng=np.random.default_rng(1)).values


def test_the_papers_attack_begins_at_0_and_leaves_the_box() -> None:
    _, view = _world(LINEAR, defended=False)
    rate = 1e-12  # nothing moves: what is left is the start
    assert np.abs(_first_steps(view, 1, rate=rate, **PAPER)).max() < 1e-9
    assert np.abs(_first_steps(view, 1, rate=rate, start="half") - 0.5).max() < 1e-9
    defended = _world(LINEAR, defended=True)[1]
    outside = _first_steps(defended, 300, **PAPER)
    assert outside.min() < -0.1
    boxed = _first_steps(defended, 300, **{**PAPER, "box": True})
    assert boxed.min() == 0
    assert boxed.max() <= 1


def test_absolute_smoothness_does_not_go_with_the_embedding() -> None:
    """Embeddings and weights a hundred times smaller: the same image is to be found, and the absolute weight
    smooths it away.
    """
    x, view = _world(LINEAR, defended=False)
    small = inversion_view(
        LINEAR,
        COLUMNS,
        embeddings=view.embeddings() / 100,
        disclosed={n: a / 100 for n, a in view.target_network().items()},
        granted=x,
    )
    settings: dict[str, Any] = {"start": "half", "smoothness": 0.001, "steps": 300}
    relative, absolute = (
        [_first_steps(v, smoothness_of=of, **settings) for v in (view, small)]
        for of in ("embedding", "absolute")
    )
    np.testing.assert_allclose(relative[0], relative[1], atol=1e-6)

    def roughness(images: Array) -> float:
        return float(np.abs(np.diff(images.reshape(-1, 4, 4), axis=1)).sum())

    assert roughness(absolute[1]) < 0.2 * roughness(absolute[0])
