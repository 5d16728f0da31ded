"""The passport layer: its three gradient paths by finite differences, its keys, what it exports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from nonempty import nonempty
from pydantic import ValidationError
from torch import nn

from vflens.defenses.passport import Passport
from vflens.errors import ConfigError
from vflens.models.networks.layers import BatchNormModule, learn_moments
from vflens.models.networks.passport import PassportLayer, weighted
from vflens.plugins.defense import Context
from vflens.randomness import exchange_names, stream
from vflens.types import Array, Exchange, Owner, Phase, Role

LINEAR, CONVOLUTION = (5, 6), (5, 3, 4, 4)  # shapes of a batch


def _layer(shape: tuple[int, ...]) -> nn.Linear | nn.Conv2d:
    torch.manual_seed(1)
    if len(shape) == 2:
        return nn.Linear(shape[1], 8, dtype=torch.float64)
    return nn.Conv2d(shape[1], 8, 3, padding=1, dtype=torch.float64)


def _passport(layer: nn.Linear | nn.Conv2d, **changes: Any) -> PassportLayer:
    settings: dict[str, Any] = {"largest_mean": 3.0, "sigma": 0.5, "redraw_means": False, "order": "paper"}
    passport = PassportLayer(layer, **(settings | changes), rng=np.random.default_rng(2))
    passport.rekey(np.random.default_rng(3))
    return passport


def _batch(shape: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(4)
    return torch.from_numpy(rng.random(shape)), torch.from_numpy(rng.normal(size=(shape[0], 8, 1, 1)))


def _loss(passport: PassportLayer, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    out = passport(x)
    loss: torch.Tensor = ((out.reshape(*out.shape[:2], -1).mean(dim=2) - target[:, :, 0, 0]) ** 2).sum()
    return loss


@pytest.mark.parametrize("normalise", ["none", "authors"])
@pytest.mark.parametrize("order", ["paper", "pool_first"])
@pytest.mark.parametrize("shape", [LINEAR, CONVOLUTION])
def test_the_gradient_in_the_weights_is_that_of_finite_differences(
    shape: tuple[int, ...], order: str, normalise: str
) -> None:
    passport = _passport(_layer(shape), order=order, normalise=normalise)
    x, target = _batch(shape)
    torch.autograd.backward(_loss(passport, x, target))
    weight = passport.layer.weight
    assert weight.grad is not None
    numeric = torch.empty_like(weight)
    with torch.no_grad():
        for index in np.ndindex(*weight.shape):
            sides = []
            for step in (1e-6, -1e-6):
                weight[index] += step
                sides.append(_loss(passport, x, target))
                weight[index] -= step
            numeric[index] = (sides[0] - sides[1]) / 2e-6
    np.testing.assert_allclose(weight.grad.numpy(), numeric.numpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shape", [LINEAR, CONVOLUTION])
def test_the_gradient_is_the_sum_of_three_paths(shape: tuple[int, ...]) -> None:
    """DW = path through u + path through γ + path through β; the extra "+β" of FedAdOb's (9) fails."""
    passport = _passport(_layer(shape))
    x, target = _batch(shape)
    weight = passport.layer.weight

    def through(part: str) -> torch.Tensor:
        """dℓ/dW where ``part`` alone depends on W."""
        scale, shift = (passport._passport(weighted(passport.layer, k[None]))[0] for k in passport.keys(x))
        u = weighted(passport.layer, x)
        parts = {"scale": scale, "shift": shift, "u": u}
        parts = {n: v if n == part else v.detach() for n, v in parts.items()}
        along = (1, -1, *[1] * (len(shape) - 2))
        out = parts["scale"].reshape(along) * parts["u"] + parts["shift"].reshape(along)
        loss = ((out.reshape(*out.shape[:2], -1).mean(dim=2) - target[:, :, 0, 0]) ** 2).sum()
        return torch.autograd.grad(loss, weight)[0]

    whole = torch.autograd.grad(_loss(passport, x, target), weight)[0]
    paths = [through(part) for part in ("u", "scale", "shift")]
    assert min(float(p.abs().max()) for p in paths) > 1e-3
    np.testing.assert_allclose(sum(paths).numpy(), whole.numpy(), rtol=1e-9, atol=1e-9)  # type: ignore[union-attr]
    if len(shape) == 2:  # the u path by hand: (G ⊙ γ)ᵀ x
        out = passport(x)
        G = (2 * (out - target[:, :, 0, 0])).detach()
        gamma = passport._passport(weighted(passport.layer, passport.keys(x)[0][None]))[0].detach()
        np.testing.assert_allclose(paths[0].numpy(), ((G * gamma).T @ x).numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("normalise", ["none", "authors"])
@pytest.mark.parametrize("shape", [LINEAR, CONVOLUTION])
def test_output_is_scale_times_layer_plus_shift(shape: tuple[int, ...], normalise: str) -> None:
    """With the authors' batch norm too: of one batch it is a scale and a shift of each channel."""
    passport = _passport(_layer(shape), normalise=normalise)
    x, _ = _batch(shape)
    u = weighted(passport.layer, x)
    out = passport(x)
    for channel in range(8):
        across, up = u[:, channel].detach().flatten(), out[:, channel].detach().flatten()
        slope, shift = np.polyfit(across.numpy(), up.numpy(), 1)
        np.testing.assert_allclose(up, slope * across + shift, rtol=0, atol=1e-9)


def test_orders_differ_on_images_and_agree_on_rows() -> None:
    for shape, same in ((LINEAR, True), (CONVOLUTION, False)):
        outputs = [
            _passport(_layer(shape), order=order)(_batch(shape)[0]) for order in ("paper", "pool_first")
        ]
        assert torch.equal(*outputs) is same


def _drawn(passport: PassportLayer, shape: tuple[int, ...], seeds: range) -> Array:
    keys = []
    for seed in seeds:
        passport.rekey(np.random.default_rng(seed))
        keys.append([k.numpy().copy() for k in passport.keys(_batch(shape)[0])])
    return np.array(keys)


def test_keys_have_the_stated_distribution() -> None:
    keys = _drawn(_passport(_layer(CONVOLUTION), sigma=0.5), CONVOLUTION, range(400))
    means = keys.mean(axis=(0, 3, 4))
    assert ((means > -3.1) & (means < 0.1)).all()
    assert len(np.unique(means.round(2))) == means.size  # one per channel and key, all different
    n = keys[:, 0, 0].size
    spread = (keys - means[None, :, :, None, None]).std()
    assert abs(spread / 0.5 - 1) < 5 / np.sqrt(2 * n)
    redrawn = _drawn(_passport(_layer(CONVOLUTION), sigma=0.0, redraw_means=True), CONVOLUTION, range(400))
    assert abs(redrawn[:, 0, 0, 0, 0].std() / (3 / np.sqrt(12)) - 1) < 0.15  # U(−3, 0)
    assert np.ptp(_drawn(_passport(_layer(CONVOLUTION), sigma=0.0), CONVOLUTION, range(9)), axis=0).max() == 0


def test_one_batch_has_one_key() -> None:
    passport = _passport(_layer(LINEAR))
    x, _ = _batch(LINEAR)
    assert torch.equal(passport(x), passport(x))
    before = passport(x)
    passport.rekey(np.random.default_rng(9))
    assert not torch.equal(passport(x), before)


def test_fixed_keys_stay_and_are_drawn_as_the_others() -> None:
    fixed = _passport(_layer(CONVOLUTION), sigma=0.5, keys="fixed")
    assert np.ptp(_drawn(fixed, CONVOLUTION, range(9)), axis=0).max() == 0
    x = _batch(CONVOLUTION)[0]
    keys = [
        PassportLayer(
            nn.Conv2d(3, 8, 3, dtype=torch.float64),
            largest_mean=3.0,
            sigma=0.5,
            redraw_means=False,
            order="paper",
            keys="fixed",
            rng=np.random.default_rng(seed),
        ).keys(x)
        for seed in range(400)
    ]
    drawn = np.array([[k.numpy() for k in pair] for pair in keys])
    means = drawn.mean(axis=(3, 4), keepdims=True)
    assert abs(means.mean() + 1.5) < 5 * 3 / np.sqrt(12 * means.size)  # U(−3, 0)
    assert abs(means.std() / np.sqrt(3**2 / 12 + 0.5**2 / 16) - 1) < 0.05
    spread = np.sqrt(((drawn - means) ** 2).mean() * 16 / 15)
    assert abs(spread / 0.5 - 1) < 5 / np.sqrt(2 * drawn.size)


def test_fixed_keys_with_means_for_each_batch_are_refused() -> None:
    with pytest.raises(ValidationError, match="mean = 'each' with keys = 'fixed': fixed keys are drawn once"):
        Passport(keys="fixed", mean="each")


@pytest.mark.parametrize("order", ["paper", "pool_first"])
@pytest.mark.parametrize("shape", [LINEAR, CONVOLUTION])
def test_the_authors_layer_is_its_formula(shape: tuple[int, ...], order: str) -> None:
    """Number by number in NumPy: γ ⊙ (u − mean)/deviation + β, or tanh(γ) ⊙ u + tanh(β)."""
    passport = _passport(_layer(shape), order=order, normalise="authors")
    x, _ = _batch(shape)
    out = passport(x).detach().numpy()
    W, E, D = (w.weight.detach().numpy() for w in (passport.layer, passport.encoder, passport.decoder))

    def layer(one: Array) -> Array:
        """(outputs, places)."""
        if one.ndim == 1:
            return (W @ one)[:, None]
        padded = np.pad(one, [(0, 0), (1, 1), (1, 1)])
        return np.array(
            [[(w * padded[:, i : i + 3, j : j + 3]).sum() for i in range(4) for j in range(4)] for w in W]
        )

    def encoded(z: Array) -> Array:
        hidden = E @ z
        return D @ np.where(hidden > 0, hidden, 0.01 * hidden)

    def parameter(key: torch.Tensor) -> Array:
        z = layer(key.numpy())
        return encoded(z.mean(axis=1)) if order == "pool_first" else encoded(z).mean(axis=1)

    gamma, beta = (parameter(key)[:, None] for key in passport.keys(x))
    u = np.array([layer(row) for row in x.numpy()])
    if len(shape) == 2:
        wanted = np.tanh(gamma) * u + np.tanh(beta)
    else:
        mean, variance = u.mean(axis=(0, 2))[:, None], u.var(axis=(0, 2))[:, None]
        wanted = gamma * (u - mean) / np.sqrt(variance + 1e-5) + beta
    np.testing.assert_allclose(out, wanted.reshape(out.shape), rtol=0, atol=1e-12)


@pytest.mark.parametrize("keys", ["redrawn", "fixed"])
@pytest.mark.parametrize("shape", [LINEAR, CONVOLUTION])
def test_the_authors_layer_folds_into_one_without_a_passport(shape: tuple[int, ...], keys: str) -> None:
    """What it predicts: with the running moments of its batch norm, which training moved."""
    passport = _passport(_layer(shape), normalise="authors", keys=keys)
    x, _ = _batch(shape)
    passport(x)
    learn_moments(passport)
    predicted = passport.eval()(x).detach()
    np.testing.assert_allclose(passport.folded()(x).detach(), predicted, rtol=0, atol=1e-12)
    moments = [
        float(m.running_mean.abs().max()) for m in passport.modules() if isinstance(m, BatchNormModule)
    ]
    assert [m > 1e-3 for m in moments] == ([] if len(shape) == 2 else [True])


def test_a_layer_without_keys_is_refused() -> None:
    passport = PassportLayer(
        nn.Linear(2, 2),
        largest_mean=1,
        sigma=1,
        redraw_means=False,
        order="paper",
        rng=np.random.default_rng(0),
    )
    with pytest.raises(RuntimeError, match="before it had keys"):
        passport(torch.zeros(1, 2))


def _wrapped(module: nn.Module, owner: Owner, **settings: Any) -> nn.Module:
    exchange = Exchange("run", Phase.TRAIN, 0, 0)
    ctx = Context(owner, exchange, np.zeros(0, np.int32), {}, hook="wrap_model", position=0, secret=b"secret")
    return Passport(**settings).wrap_model(module, ctx)


def _network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.Conv2d(2, 4, 3), nn.Flatten(), nn.Linear(16, 3), nn.Linear(3, 2)
    )


@pytest.mark.parametrize(
    ("owner", "settings", "place"),
    [
        (Owner("p"), {}, "1"),  # a bottom: the last convolution
        (Owner("a", role=Role.ACTIVE), {}, "3"),  # a top: the first linear layer
        (Owner("p", labels=np.zeros(1)), {}, "1"),  # a passive party that holds labels too
        (Owner("p"), {"layer": "4"}, "4"),
    ],
)
def test_the_place_is_that_of_the_appendix_or_the_one_named(owner: Owner, settings: Any, place: str) -> None:
    wrapped = _wrapped(_network(), owner, **settings)
    assert [n for n, m in wrapped.named_modules() if isinstance(m, PassportLayer)] == [place]


@pytest.mark.parametrize(
    ("layer", "module", "message"),
    [
        ("9", _network(), "is no linear or convolution layer of its model without a passport: name one of"),
        ("2", _network(), "is no linear or convolution layer of its model without a passport: name one of"),
        (None, nn.Identity(), "finds no layer of its model without a passport: leave it out"),
    ],
)
def test_a_model_without_the_layer_is_refused(layer: str | None, module: nn.Module, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        _wrapped(module, Owner("p"), layer=layer)


@pytest.mark.parametrize(
    ("role", "places"), [(Role.PASSIVE, ["1", "0", "4", "3"]), (Role.ACTIVE, ["3", "4", None])]
)
def test_a_second_passport_takes_the_next_layer_without_one(role: Role, places: list[str | None]) -> None:
    """Never a part of the first, whose autoencoder is linear layers too; None: it is refused."""
    module, owner, found = _network(), Owner("p", role=role), set[str]()
    for place in nonempty(places):
        if place is None:
            with pytest.raises(ConfigError, match="without a passport: leave it out"):
                _wrapped(module, owner)
            return
        module = _wrapped(module, owner)
        (new,) = {n for n, m in module.named_modules() if isinstance(m, PassportLayer)} - found
        assert new == place
        found.add(new)


@pytest.mark.parametrize("layer", ["1", "1.layer", "1.encoder"])
def test_a_layer_has_one_passport(layer: str) -> None:
    once = _wrapped(_network(), Owner("p"), layer="1")
    with pytest.raises(ConfigError, match=r"without a passport: name one of \['0', '3', '4'\]"):
        _wrapped(once, Owner("p"), layer=layer)
    with pytest.raises(ConfigError, match="leave it out"):
        _wrapped(_wrapped(nn.Linear(2, 3), Owner("p")), Owner("p"))


# -- what is claimed -------------------------------------------------------------------------------------


def _keys(defense: Passport, secrets: Sequence[bytes]) -> Array:
    """The key s^β (draws, 6) of a linear layer under each secret, each in a batch of its own."""
    found, start, nothing = [], Exchange("run", Phase.TRAIN, 0, 0), np.zeros(0, np.int32)
    for step, secret in enumerate(secrets):
        context = Context(Owner("passive"), start, nothing, {}, hook="wrap_model", position=0, secret=secret)
        layer: Any = defense.wrap_model(nn.Linear(6, 4), context)
        layer.rekey(stream(secret, "rekey", *exchange_names(start._replace(step=step))))
        found.append(layer.keys(torch.zeros(1, 6))[1].numpy())
    return np.array(found, np.float64)


def _guessing_error(keys: Array) -> float:
    """The error of who guesses every number by its mean in other draws."""
    half = len(keys) // 2
    return float(((keys[half:] - keys[:half].mean(axis=0)) ** 2).mean())


@pytest.mark.facts
def test_a_key_is_guessed_no_better_than_claimed_and_broken_keys_are() -> None:
    """Means drawn from a shorter range, or the same in every run, fail the claim."""
    passport = Passport(largest_mean=10.0, sigma=1.0)
    claimed = passport.claim({}).key_error
    assert claimed is not None
    secrets = [f"secret {i}".encode() for i in range(1200)]
    assert _guessing_error(_keys(passport, secrets)) == pytest.approx(claimed, rel=0.1)
    shorter = Passport(largest_mean=8.0, sigma=1.0)
    assert _guessing_error(_keys(shorter, secrets)) < 0.9 * claimed
    assert _guessing_error(_keys(passport, [b"public"] * len(secrets))) < 0.9 * claimed


def test_in_the_theorems_setting_an_input_errs_as_the_guess_of_the_key_and_the_mean_undoes_it() -> None:
    """H = W(x + s): FedAdOb's Theorem 1 bounds who guesses s; who knows the inputs' mean does not guess."""
    rng = np.random.default_rng(2)
    claimed = Passport(largest_mean=10.0, sigma=1.0).claim({}).key_error or np.nan
    guessed, estimated = [], []
    for s, guess in _keys(Passport(largest_mean=10.0), [f"{i}".encode() for i in range(600)]).reshape(
        -1, 2, 6
    ):
        x, w = rng.random((64, 6)), rng.normal(size=(9, 6))
        seen = (x + s) @ w.T @ np.linalg.pinv(w).T
        guessed.append(((seen - guess - x) ** 2).mean())
        estimated.append(((seen - seen.mean(axis=0) + 0.5 - x) ** 2).mean())
    assert np.mean(guessed) > claimed
    assert np.mean(estimated) < 0.01
