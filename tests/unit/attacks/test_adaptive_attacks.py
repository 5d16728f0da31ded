"""Attacks that know a defence: what they find where a plain computation says what there is to find."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from inversionview import inversion_view, recorded_view

from vflens.attacks.helpers.linear.believed import beliefs_of
from vflens.attacks.helpers.linear.signs import sided
from vflens.attacks.wmi import WhiteBoxInversion
from vflens.attacks.wmi_averaged import AveragedInversion
from vflens.attacks.wmi_layer import LayerInversion, shadow
from vflens.attacks.wmi_masked import MaskedInversion
from vflens.attacks.wmi_signs import SignInversion
from vflens.errors import KnowledgeError
from vflens.models.families.split_network import SplitNetwork
from vflens.models.networks.architectures import bottom
from vflens.models.networks.parameters import to_arrays
from vflens.models.settings import Horizontal
from vflens.numerics.updates import largest_numbers
from vflens.plugins.attack import Attack
from vflens.plugins.views.horizontal import ServerView
from vflens.plugins.views.vertical import AdversaryView
from vflens.storage.journal import Messages
from vflens.types import Array, ColumnInfo, Exchange, PartyInfo, Phase, Point, Released, Role

D, W, N, M, EPOCHS = 6, 12, 20, 40, 8
COLUMNS = tuple(ColumnInfo(f"c{i}", 0.0, 1.0) for i in range(D))
LINEAR = SplitNetwork(architecture="mlp", width=W, precision="float64")
ROWS = np.arange(M + N, dtype=np.int32)
MEANS = np.array([0.2, 0.8, 0.25, 0.75, 0.5, 0.6])  # most numbers are surely on one side of their mean
X = np.clip(MEANS + 0.15 * np.random.default_rng(3).normal(size=(M + N, D)), 0, 1)
GRANTED, ASKED = X[:M], X[M:]


def _linear() -> tuple[dict[str, Array], Array, Array]:
    """The parameters of a bottom model of one layer, and its weight and bias."""
    torch.manual_seed(1)
    disclosed = to_arrays(dict(bottom(LINEAR, COLUMNS).named_parameters()))
    return disclosed, disclosed["0.weight"], disclosed["0.bias"]


DISCLOSED, WEIGHT, BIAS = _linear()


def _predicted(h: Array) -> AdversaryView:
    return inversion_view(LINEAR, COLUMNS, embeddings=h, disclosed=DISCLOSED, granted=GRANTED)


def _recorded(
    epochs: list[Array], trained: Array, predicted: tuple[Array, Array] | None = None
) -> AdversaryView:
    """The view on the asked rows: in each of ``epochs`` the embeddings of the ``trained`` rows, and
    ``predicted`` rows with theirs.
    """
    return recorded_view(
        LINEAR,
        COLUMNS,
        ROWS[M:],
        trained=[(trained, h[: len(trained)]) for h in epochs],
        epochs=len(epochs),
        predicted=[] if predicted is None else [predicted],
        disclosed={
            Point.PARAMETERS: (ROWS[:0], DISCLOSED),
            Point.AUXILIARY: (ROWS[:M], {"features": GRANTED}),
        },
    )


def _trained(epochs: list[Array]) -> AdversaryView:
    """The asked rows were trained on."""
    return _recorded(epochs, ROWS)


def _of_predictions(epochs: list[Array], h: Array) -> AdversaryView:
    """Only granted rows were trained on; the asked ones have embeddings ``h``."""
    return _recorded(epochs, ROWS[:M], (ROWS[M:], h))


def _found(attack: Attack, view: Any) -> Array:
    return attack.reconstruct(view, rng=np.random.default_rng(1)).values


def _by_grant(attack: Attack, h: Array) -> Array:
    """What ``attack`` finds in a server whose client granted the embeddings ``h`` of all rows."""
    agreed: Any = SimpleNamespace(
        parties=[PartyInfo("target", Role.CLIENT, columns=COLUMNS, n_classes=2)],
        n_classes=2,
        model=LINEAR,
        horizontal=Horizontal(rounds=1),
    )
    granted: list[tuple[Point, Array, dict[str, Array]]] = [
        (Point.AUXILIARY, ROWS[:M], {"features": GRANTED}),
        (Point.EMBEDDING, ROWS, {"embedding": h}),
    ]
    at = Exchange("run", Phase.DISCLOSE, 0, 0)
    view = ServerView(
        federation=agreed,
        number=None,
        parameters=lambda number: {f"bottom.{name}": array for name, array in DISCLOSED.items()},
        target="target",
        party="server",
        rows=ROWS[M:],
        log=Messages([Released("target", at, point, rows, tensors=held) for point, rows, held in granted]),
        needs=attack.declared().needs,
        phases=attack.declared().phases,
        every=1,
        device="cpu",
        joint=None,
        progress=lambda stage, done, total: None,
    )
    return _found(attack, view)


def _error(x: Array) -> float:
    return float(((x - ASKED) ** 2).mean())


def _expected(sizes: Array, centre: float, mean: Array, precision: Array) -> Array:
    """The mean over every pattern of signs, one by one, by its density."""
    found = []
    for row in sizes:
        weights, total = 0.0, np.zeros(len(row))
        for signs in product((-1.0, 1.0), repeat=len(row)):
            x = centre + np.array(signs) * row
            outside = np.maximum(x - 1, 0) + np.maximum(-x, 0)
            density = float(np.exp(-(x - mean) @ precision @ (x - mean) / 2 - (outside @ outside) / 0.005))
            weights, total = weights + density, total + density * x
        found.append(total / weights)
    return np.clip(found, 0, 1)


def test_sides_are_those_of_all_patterns_of_signs() -> None:
    """Gibbs sampling against exhaustion; correlated numbers, so that no one tells its side alone."""
    rng = np.random.default_rng(0)
    root = 0.2 * np.eye(D) + 0.05
    mean, precision = rng.uniform(0.3, 0.7, D), np.linalg.inv(root @ root)
    sizes = np.abs(rng.multivariate_normal(mean, root @ root, 15).clip(0, 1) - 0.45)
    found = sided(sizes, 0.45, (mean, precision), 4000, rng)
    assert np.abs(found - _expected(sizes, 0.45, mean, precision)).max() < 0.05


@pytest.mark.facts
def test_signs_are_undone_to_what_exhaustion_leaves() -> None:
    """A linear bottom: sizes are exact. What ignores the signs errs more than a blind guess."""
    centre = GRANTED.mean()
    signs = np.random.default_rng(5).choice([-1.0, 1.0], ASKED.shape)
    view = _predicted((signs * (ASKED - centre)) @ WEIGHT.T + BIAS)
    best = _expected(np.abs(ASKED - centre), float(centre), *beliefs_of(GRANTED))
    found = _found(SignInversion(steps=1500, sweeps=2000), view)
    assert np.abs(found - best).max() < 0.05
    blind = float(ASKED.var(axis=0).mean())
    assert _error(WhiteBoxInversion().reconstruct(view, rng=np.random.default_rng(1)).values) > blind
    assert _error(found) == pytest.approx(_error(best), rel=0.05)


def _likeliest(h: Array, variance: float) -> Array:
    """The mode of a normal posterior, by its normal equations."""
    mean = GRANTED.mean(axis=0)
    precision = beliefs_of(GRANTED)[1]
    left = WEIGHT.T @ WEIGHT / variance + precision
    right = (h - BIAS) @ WEIGHT / variance + precision @ mean
    return np.linalg.solve(left, right.T).T


def test_noise_is_averaged_over_epochs_and_the_likeliest_rows_are_found() -> None:
    rng, level = np.random.default_rng(6), 0.05
    clean = X @ WEIGHT.T + BIAS
    epochs = [clean + level * rng.normal(size=clean.shape) for _ in range(EPOCHS)]
    found = _found(AveragedInversion(steps=2000), _trained(epochs))
    mean = np.mean(epochs, axis=0)
    variance = float(((mean[:M] - clean[:M]) ** 2).mean())
    assert variance == pytest.approx(level**2 / EPOCHS, rel=0.15)
    expected = _likeliest(mean[M:], variance)
    inside = (expected > 0.02) & (expected < 0.98)
    rows = inside.all(axis=1)
    assert rows.sum() > 5
    assert np.abs(found - expected)[rows].max() < 2e-3
    assert _error(found) < 0.3 * _error(_found(AveragedInversion(), _trained(epochs[-1:])))


def test_epochs_of_another_model_are_not_averaged() -> None:
    """The number of epochs makes granted rows nearest: those before the bottom model settled are left out."""
    rng = np.random.default_rng(7)
    clean = X @ WEIGHT.T + BIAS
    early = [clean + 1 + 0.3 * rng.normal(size=clean.shape) for _ in range(4)]
    late = [clean + 0.3 * rng.normal(size=clean.shape) for _ in range(4)]
    attack = AveragedInversion()
    np.testing.assert_array_equal(_found(attack, _trained(early + late)), _found(attack, _trained(late)))


def test_a_prediction_is_inverted_under_the_noise_of_one_epoch() -> None:
    rng = np.random.default_rng(8)
    clean = X @ WEIGHT.T + BIAS
    epochs = [clean + 0.3 * rng.normal(size=clean.shape) for _ in range(3)]
    h = clean[M:] + 0.3 * rng.normal(size=(N, W))
    view = _of_predictions(epochs, h)
    expected = _likeliest(h, float(((epochs[-1][:M] - clean[:M]) ** 2).mean()))
    rows = ((expected > 0.02) & (expected < 0.98)).all(axis=1)
    assert rows.sum() > 5
    found = _found(AveragedInversion(steps=2000), view)
    assert np.abs(found - expected)[rows].max() < 2e-3


def test_clipping_that_is_known_is_modelled() -> None:
    clean = X @ WEIGHT.T + BIAS
    largest = float(np.median(np.linalg.norm(clean, axis=1)))
    sent = clean * np.minimum(1, largest / np.linalg.norm(clean, axis=1))[:, None]
    view = _of_predictions([sent], sent[M:])
    known, unknown = (_error(_found(AveragedInversion(clip=c), view)) for c in (largest, None))
    assert known < 1e-4
    assert unknown > 10 * known


def test_a_shadow_is_least_squares_and_its_noise_that_of_rows_left_out() -> None:
    rng = np.random.default_rng(9)
    g, layer = rng.normal(size=(M, 5)), rng.normal(size=(5, 3))
    matrix, offset, noise = shadow(g, g @ layer + 2)
    whole = np.column_stack([g, np.ones(M)])
    plain = np.linalg.lstsq(whole, g @ layer + 2, rcond=None)[0]
    np.testing.assert_allclose(np.vstack([matrix, offset]), plain, atol=1e-8)
    assert noise < 1e-16
    h = g @ layer + 0.5 * rng.normal(size=(M, 3))
    matrix, offset, noise = shadow(g, h)
    left = []
    for i in range(M):  # nearly no penalty at this noise: refitted row by row
        others = np.arange(M) != i
        refitted = np.linalg.lstsq(whole[others], h[others], rcond=None)[0]
        left.append(((whole[i] @ refitted - h[i]) ** 2).mean())
    assert noise == pytest.approx(float(np.mean(left)), rel=0.05)


def test_a_secret_layer_is_learned_and_inverted() -> None:
    """MID's predictions: z = μ(G(x)); what takes μ for the identity errs more than a blind guess."""
    rng = np.random.default_rng(10)
    layer, offset = rng.normal(size=(W, W)), rng.normal(size=W)
    z = (X @ WEIGHT.T + BIAS) @ layer + offset
    epochs = [z + 0.05 * rng.normal(size=z.shape) for _ in range(EPOCHS)]
    view = _of_predictions(epochs, z[M:])
    blind = float(ASKED.var(axis=0).mean())
    assert _error(_found(LayerInversion(steps=1000), view)) < 0.1 * blind
    assert _error(_found(AveragedInversion(steps=1000), view)) > 0.5 * blind


@pytest.mark.facts
def test_numbers_that_were_not_sent_are_no_zeros() -> None:
    """8 of 12 numbers are sent: more than the 6 columns, so that those alone give the row."""
    h = X[M:] @ WEIGHT.T + BIAS
    sparse = largest_numbers(h, 8 / W)
    view = _predicted(sparse)
    kept = [np.flatnonzero(row) for row in sparse]
    solved = [
        np.linalg.lstsq(WEIGHT[k], row[k] - BIAS[k], rcond=None)[0]
        for row, k in zip(sparse, kept, strict=True)
    ]
    np.testing.assert_allclose(solved, ASKED, atol=1e-9)
    attack: dict[str, Any] = {"steps": 3000}
    assert np.abs(_found(MaskedInversion(noise=1e-9, **attack), view) - solved).max() < 0.02
    assert _error(_found(WhiteBoxInversion(start="granted", **attack), view)) > 1e-3


@pytest.mark.facts
def test_the_least_number_that_was_sent_bounds_the_others() -> None:
    """One number is sent, of rows unlike the granted ones: what these suggest would have sent another one."""
    sparse = largest_numbers(np.random.default_rng(12).random((N, D)) @ WEIGHT.T + BIAS, 1 / W)
    covariance, mean = np.linalg.inv(beliefs_of(GRANTED)[1]), GRANTED.mean(axis=0)

    def beyond(x: Array) -> float:
        return float((np.abs(x @ WEIGHT.T + BIAS).max(axis=1) - np.abs(sparse).max(axis=1)).max())

    unbounded = []
    for row in sparse:  # the likeliest one with that number, in closed form
        w, left = WEIGHT[row != 0][0], row.sum() - BIAS[row != 0][0]
        unbounded.append(mean + covariance @ w * (left - w @ mean) / (w @ covariance @ w))
    assert beyond(np.clip(unbounded, 0, 1)) > 0.05
    assert beyond(_found(MaskedInversion(noise=1e-4, steps=2000), _predicted(sparse))) < 0.02


@pytest.mark.facts
def test_a_server_inverts_what_was_granted_as_a_party_inverts_predictions() -> None:
    """The same rows and embeddings, of a client."""
    clean, rng = X @ WEIGHT.T + BIAS, np.random.default_rng(13)
    signs = rng.choice([-1.0, 1.0], X.shape)
    sent: list[tuple[Attack, Array]] = [
        (SignInversion(), (signs * (X - GRANTED.mean())) @ WEIGHT.T + BIAS),
        (MaskedInversion(), largest_numbers(clean, 8 / W)),
    ]
    for attack, h in sent:
        np.testing.assert_array_equal(_by_grant(attack, h), _found(attack, _predicted(h[M:])))


@pytest.mark.facts
def test_a_server_takes_the_noise_from_the_granted_rows() -> None:
    """One embedding of each row: the closed form under the noise that granted rows show."""
    clean = X @ WEIGHT.T + BIAS
    h = clean + 0.3 * np.random.default_rng(14).normal(size=clean.shape)
    expected = _likeliest(h[M:], float(((h[:M] - clean[:M]) ** 2).mean()))
    rows = ((expected > 0.02) & (expected < 0.98)).all(axis=1)
    assert rows.sum() > 5
    assert np.abs(_by_grant(AveragedInversion(steps=2000), h) - expected)[rows].max() < 2e-3
    layer = np.random.default_rng(15).normal(size=(W, W))
    found = _by_grant(LayerInversion(steps=1000), clean @ layer + 1)
    assert _error(found) < 0.1 * float(ASKED.var(axis=0).mean())


def test_an_epoch_that_is_not_whole_is_said() -> None:
    h = X @ WEIGHT.T + BIAS
    view = _recorded([h], ROWS[: M - 1], (ROWS[M:], h[M:]))
    with pytest.raises(KnowledgeError, match="no recorded epoch of 'target' has the embeddings of all"):
        _found(AveragedInversion(), view)
