"""Split networks: shapes, parameters as arrays, training step by step, and the same bits after a restart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from thinned import first

from vflens.defenses.passport import Passport
from vflens.errors import ConfigError, KnowledgeError, ProtocolError, StorageError
from vflens.models.families.softmax_regression import SOFTMAX_REGRESSION
from vflens.models.families.split_network import SplitNetwork
from vflens.models.networks import training
from vflens.models.networks.architectures import bottom
from vflens.models.networks.device import placed
from vflens.models.networks.parameters import from_arrays, to_arrays
from vflens.models.networks.training import Bottom, Top
from vflens.models.part import Keys, LossGradient, Wrap, plain
from vflens.models.pixels import image_grid
from vflens.models.settings import Training
from vflens.plugins.defense import Context
from vflens.types import Array, ColumnInfo, Exchange, Owner, Phase, Role

PIXELS = tuple(ColumnInfo(f"p{i}", 0.0, 1.0, pixel=(i // 14, 14 + i % 14)) for i in range(28 * 14))
COLUMNS = tuple(ColumnInfo(f"c{i}", 0.0, 1.0) for i in range(6))
TRAINING = Training(learning_rate=0.01, batch_size=20)


def _exchange(step: int, phase: Phase = Phase.TRAIN) -> Exchange:
    return Exchange("run", phase, 0, step)


def _passport(owner: Owner) -> Wrap:
    ctx = Context(
        owner, _exchange(0), np.zeros(0, np.int32), {}, hook="wrap_model", position=0, secret=b"defence"
    )
    return lambda module: Passport(largest_mean=3.0).wrap_model(module, ctx)


@pytest.mark.parametrize(
    "settings",
    [{"architecture": "mlp", "width": 9, "hidden": [7]}, {"architecture": "cnn"}, {"architecture": "lenet"}],
)
def test_embeddings_have_the_width_that_everybody_computes_without_torch(settings: Any) -> None:
    network = SplitNetwork(**settings)
    model = Bottom(network, PIXELS, TRAINING, Keys.under(b"secret"))
    h = model.forward(np.random.default_rng(0).random((3, 392)), _exchange(0))
    assert h.shape == (3, network.embedding_width(PIXELS))
    assert h.dtype == np.float32


def test_an_image_is_put_together_whatever_the_order_of_its_columns() -> None:
    network = SplitNetwork(architecture="cnn", precision="float64")
    x = np.random.default_rng(0).random((2, 392))
    order = np.random.default_rng(1).permutation(392)
    straight = Bottom(network, PIXELS, TRAINING, Keys.under(b"s")).forward(x, _exchange(0))
    mixed = Bottom(network, [PIXELS[i] for i in order], TRAINING, Keys.under(b"s")).forward(
        x[:, order], _exchange(0)
    )
    np.testing.assert_array_equal(straight, mixed)
    np.testing.assert_array_equal(image_grid(PIXELS), np.arange(392).reshape(1, 28, 14))


@pytest.mark.parametrize(
    ("columns", "architecture", "message"),
    [
        (COLUMNS, "cnn", "6 columns are not the pixels of one rectangle"),
        (PIXELS[:-1], "cnn", "391 columns are not the pixels"),
        ((*PIXELS[:-1], PIXELS[0]), "lenet", "392 columns are not the pixels"),
        (PIXELS[: 14 * 8], "lenet", "images of at least 12 by 12 pixels, a party holds 8 by 14"),
    ],
)
def test_a_cut_that_does_not_fit_is_refused(
    columns: Sequence[ColumnInfo], architecture: Any, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        SplitNetwork(architecture=architecture).embedding_width(columns)


@pytest.mark.parametrize(
    ("settings", "widths", "message"),
    [
        ({}, [4, 5], r"'sum' of embeddings of widths \[4, 5\]: cut the columns alike, or concatenate"),
        ({"trainable_top": False}, [4, 4], "combine by sum, of an 'mlp' with width = 3"),
        (
            {"trainable_top": False, "combine": "concatenate"},
            [3],
            "combine by sum, of an 'mlp' with width = 3",
        ),
    ],
)
def test_widths_that_do_not_combine_are_refused(settings: Any, widths: list[int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SplitNetwork(architecture="mlp", **settings).combined_width(widths, 3)


def test_an_attack_on_layers_is_refused_where_no_split_network_is_trained() -> None:
    network = SplitNetwork(architecture="mlp")
    assert network.network() is network
    with pytest.raises(KnowledgeError, match="trains softmax regression: this attack is made for split netw"):
        SOFTMAX_REGRESSION.network()


# -- parameters as arrays ----------------------------------------------------------------------------


def test_parameters_travel_as_named_arrays() -> None:
    network = SplitNetwork(architecture="lenet")
    one, other = (bottom(network, PIXELS) for _ in range(2))
    arrays = to_arrays(one.state_dict())
    assert list(arrays) == ["1.weight", "1.bias", "4.weight", "4.bias"]
    assert {a.dtype for a in arrays.values()} == {np.dtype(np.float32)}
    from_arrays(other, arrays)
    x = torch.rand(2, 392)
    assert torch.equal(one(x), other(x))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"9.weight": np.zeros(3)}, "'9.weight' stand in one of file and model only"),
        ({"1.weight": np.zeros((3, 3))}, r"'1.weight' have shape \(3, 3\), the model's \(6, 1, 5, 5\)"),
        ({"1.bias": np.full(6, np.nan)}, "'1.bias' hold NaN"),
    ],
)
def test_parameters_of_another_architecture_are_refused(change: Mapping[str, Array], message: str) -> None:
    module = bottom(SplitNetwork(architecture="lenet"), PIXELS)
    before = to_arrays(module.state_dict())
    with pytest.raises(ProtocolError, match=message):
        from_arrays(module, before | dict(change))
    after = to_arrays(module.state_dict())
    assert all(np.array_equal(before[n], after[n]) for n in before)


def test_a_passport_changes_no_name_and_exports_neither_keys_nor_autoencoder() -> None:
    network = SplitNetwork(architecture="cnn")
    bare = Bottom(network, PIXELS, TRAINING, Keys.under(b"s"))
    guarded = Bottom(network, PIXELS, TRAINING, Keys.under(b"s"), _passport(Owner("p")))
    assert {n: a.shape for n, a in bare.parameters().items()} == {
        n: a.shape for n, a in guarded.parameters().items()
    }
    assert sum(a.size for a in guarded.state().values()) > sum(a.size for a in guarded.parameters().values())
    from_arrays(bottom(network, PIXELS), guarded.parameters())


# -- training ----------------------------------------------------------------------------------------

NETWORKS: Mapping[str, dict[str, Any]] = {
    "mlp": {"architecture": "mlp", "width": 8, "hidden": (10,), "dropout": 0.3},
    "concatenated": {"architecture": "mlp", "width": 8, "combine": "concatenate"},
    "float64": {"architecture": "mlp", "width": 8, "precision": "float64"},
}


class Pair:
    """A passive party's bottom and the active party's top, trained on made-up rows."""

    def __init__(self, network: SplitNetwork, wrap: bool = False, optimizer: Any = "adam") -> None:
        rng = np.random.default_rng(0)
        self.x, self.own = rng.random((60, 6)), rng.random((60, 6))
        self.y = np.eye(3)[(self.x.sum(1) > 3).astype(int) + (self.own[:, 0] > 0.5)]
        settings = TRAINING.model_copy(update={"optimizer": optimizer})
        walls = [_passport(Owner("p")), _passport(Owner("a", role=Role.ACTIVE))] if wrap else [plain, plain]
        self.bottom = Bottom(network, COLUMNS, settings, Keys.under(b"passive"), walls[0])
        self.top = Top(
            network, COLUMNS, width=8, classes=3, training=settings, keys=Keys.under(b"active"), wrap=walls[1]
        )

    def step(self, step: int) -> float:
        rows = np.random.default_rng(step).permutation(60)[:20]
        h = self.bottom.forward(self.x[rows], _exchange(step))
        loss, g, learn = self.top.loss_gradient(h, self.own[rows], self.y[rows], _exchange(step))
        learn()
        self.bottom.learn(self.x[rows], g, _exchange(step))
        return loss

    def bits(self) -> bytes:
        states = [*self.bottom.state().items(), *self.top.state().items()]
        return b"".join(name.encode() + array.tobytes() for name, array in states)


@pytest.mark.parametrize("wrap", first([True, False]))
@pytest.mark.parametrize("name", NETWORKS)
def test_it_learns(name: str, wrap: bool) -> None:
    pair = Pair(SplitNetwork(**NETWORKS[name]), wrap)
    losses = [pair.step(s) for s in range(200)]
    assert np.mean(losses[-20:]) < 0.75 * np.mean(losses[:10])


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("wrap", [False, True])
def test_a_restart_in_the_middle_ends_with_the_same_bits(wrap: bool, optimizer: str) -> None:
    """Dropout, optimiser and passport keys included; the gradient of step 5 arrives after the restart."""
    network = SplitNetwork(**NETWORKS["mlp"])
    whole, resumed = Pair(network, wrap, optimizer), Pair(network, wrap, optimizer)
    for step in range(5):
        whole.step(step), resumed.step(step)
    fresh = Pair(network, wrap, optimizer)
    fresh.bottom.load(resumed.bottom.state())
    fresh.top.load(resumed.top.state())
    rows = np.random.default_rng(5).permutation(60)[:20]
    h = resumed.bottom.forward(resumed.x[rows], _exchange(5))  # then it was killed
    _, g, learn = fresh.top.loss_gradient(h, fresh.own[rows], fresh.y[rows], _exchange(5))
    learn()
    fresh.bottom.learn(fresh.x[rows], g, _exchange(5))
    whole.step(5)
    for step in range(6, 9):
        whole.step(step), fresh.step(step)
    assert whole.bits() == fresh.bits()
    assert whole.bits() != resumed.bits()


@pytest.mark.parametrize("wrap", [False, True])
def test_two_halves_learn_as_one_network(wrap: bool) -> None:
    """The gradient that crosses the cut, against finite differences of the whole loss in a bottom weight."""
    network = SplitNetwork(**NETWORKS["float64"])
    pair = Pair(network, wrap)
    rows, exchange = np.arange(20), _exchange(0)

    def loss() -> float:
        h = pair.bottom.forward(pair.x[rows], exchange)
        return pair.top.loss_gradient(h, pair.own[rows], pair.y[rows], exchange).loss

    weight = next(
        p for n, p in pair.bottom.module.named_parameters() if n.endswith("0.weight") or "layer.weight" in n
    )
    h = pair.bottom.forward(pair.x[rows], exchange)
    _, g, _ = pair.top.loss_gradient(h, pair.own[rows], pair.y[rows], exchange)
    pair.bottom._apply = lambda *_: None  # type: ignore[method-assign]  # the gradient alone
    pair.bottom.learn(pair.x[rows], g, exchange)
    assert weight.grad is not None
    gradient = weight.grad.clone()
    for index in ((0, 0), (3, 2), (7, 5)):
        sides = []
        for step in (1e-6, -1e-6):
            for change in (step, None, -step):
                if change is None:
                    sides.append(loss())
                else:
                    weight.data[index] += change
        np.testing.assert_allclose(float(gradient[index]), (sides[0] - sides[1]) / 2e-6, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_each_gradient_is_learned_by_its_own_step(optimizer: str) -> None:
    """Two gradients are computed before either is learned from, then both in order."""
    pair, twin = (Pair(SplitNetwork(**NETWORKS["float64"]), optimizer=optimizer) for _ in range(2))
    first, second = np.arange(20), np.arange(20, 40)
    h = [pair.bottom.forward(pair.x[rows], _exchange(0, Phase.PREDICT)) for rows in (first, second)]

    def gradient(of: Pair, which: int) -> LossGradient:
        rows = (first, second)[which]
        return of.top.loss_gradient(h[which], of.own[rows], of.y[rows], _exchange(which))

    learn, later = gradient(pair, 0).learn, gradient(pair, 1).learn
    gradient(twin, 0).learn()
    learn()
    assert pair.bits() == twin.bits()
    later()
    assert pair.bits() != twin.bits()


def test_weights_that_fade_become_zero_and_not_subnormal() -> None:
    """A product of matrices takes ten times as long with such numbers."""
    bottom = Bottom(SplitNetwork(architecture="mlp", width=8), COLUMNS, TRAINING, Keys.under(b"s"))
    weight = next(iter(bottom.module.parameters()))
    with torch.no_grad():
        weight[0], weight[1], weight[2] = 1e-40, -2e-38, 0.25
    x = np.zeros((4, len(COLUMNS)))
    bottom.learn(x, np.zeros((4, 8), np.float32), _exchange(0))
    assert not weight[:2].any()
    torch.testing.assert_close(
        weight[2], torch.full_like(weight[2], 0.25), rtol=0, atol=0.02
    )  # one step of Adam


def test_gradients_of_rows_that_are_certain_are_zero_and_not_subnormal() -> None:
    network = SplitNetwork(architecture="mlp", width=2, trainable_top=False)
    top = Top(network, (), width=2, classes=2, training=TRAINING, keys=Keys.under(b"s"))
    z = np.array([[95.0, 0.0], [0.0, 1.0]], np.float32)
    _, g, _ = top.loss_gradient(z, np.zeros((2, 0)), np.eye(2)[[0, 1]], _exchange(0))
    assert (g[0] == 0).all()
    assert (g[1] != 0).all()


def test_summed_logits_without_a_top_give_the_gradient_of_softmax() -> None:
    network = SplitNetwork(architecture="mlp", width=3, trainable_top=False, precision="float64")
    top = Top(network, (), width=3, classes=3, training=TRAINING, keys=Keys.under(b"s"))
    z, y = np.random.default_rng(0).normal(size=(5, 3)), np.eye(3)[[0, 1, 2, 0, 1]]
    loss, g, learn = top.loss_gradient(z, np.zeros((5, 0)), y, _exchange(0))
    c = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    np.testing.assert_allclose(g, (c - y) / 5, atol=1e-12)
    np.testing.assert_allclose(loss, -np.log(c[y == 1]).mean(), rtol=1e-12)
    np.testing.assert_allclose(np.exp(top.log_scores(z, np.zeros((5, 0)), _exchange(0, Phase.PREDICT))), c)
    learn()  # there is nothing
    assert top.parameters() == {}


@pytest.mark.parametrize("penalise_bias", [True, False])
def test_the_penalty_covers_the_passport_too(penalise_bias: bool) -> None:
    """Without a gradient a step of plain descent shrinks each penalised number by 2·rate·l2 of it, and no
    other.
    """
    changes = {"optimizer": "sgd", "learning_rate": 0.1, "l2": 1.5, "penalise_bias": penalise_bias}
    network = SplitNetwork(**NETWORKS["mlp"])
    model = Bottom(
        network, COLUMNS, TRAINING.model_copy(update=changes), Keys.under(b"s"), _passport(Owner("p"))
    )
    before = model.state()
    model.learn(np.ones((4, 6)), np.zeros((4, 8)), _exchange(0))
    after = model.state()
    assert {n for n in before if "encoder" in n or "decoder" in n}
    for name, value in before.items():
        kept = 0.7 if penalise_bias or not name.endswith("bias") else 1.0
        np.testing.assert_allclose(after[name], kept * value, rtol=1e-6, err_msg=name)


def test_prediction_drops_nothing_and_leaves_training_alone() -> None:
    pair, twin = (Pair(SplitNetwork(**NETWORKS["mlp"])) for _ in range(2))
    first, again = (pair.bottom.forward(pair.x, _exchange(n, Phase.PREDICT)) for n in (0, 1))
    np.testing.assert_array_equal(first, again)
    pair.step(0), twin.step(0)
    assert pair.bits() == twin.bits()


def test_the_state_of_another_network_is_refused() -> None:
    small, large = (
        Bottom(SplitNetwork(architecture="mlp", width=w), COLUMNS, TRAINING, Keys.under(b"s")) for w in (4, 5)
    )
    with pytest.raises(StorageError, match=r"does not fit this party's network at 'model/bottom.0.weight'"):
        large.load(small.state())


# -- where it computes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mlp", "concatenated"])
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_modules_batches_and_optimiser_are_on_the_configured_device(
    monkeypatch: pytest.MonkeyPatch, name: str, optimizer: str
) -> None:
    """Torch's "meta" stands for the GPU: it holds no numbers, and refuses what mixes it with the processor's
    tensors.
    """
    monkeypatch.setattr(training, "placed", lambda device: torch.device("meta"))
    monkeypatch.setattr(training, "_array", lambda t: np.zeros(t.shape, str(t.dtype).removeprefix("torch.")))
    pair = Pair(SplitNetwork(**NETWORKS[name]), wrap=True, optimizer=optimizer)
    for step in range(2):
        pair.step(step)
    pair.top.log_scores(np.zeros((3, 8)), np.zeros((3, 6)), _exchange(0, Phase.PREDICT))
    with pytest.warns(UserWarning, match="non-meta parameter"):  # a copy to "meta" copies nothing
        pair.bottom.load(pair.bottom.state())
    pair.step(2)
    for model in (pair.bottom, pair.top):
        optimised = (t for t in vars(model._optimizer).values() if isinstance(t, torch.Tensor))
        gradients = (p.grad for p in model.module.parameters() if p.requires_grad)
        tensors = [*model.module.state_dict().values(), model._theta, *gradients, *optimised]
        assert {t.device.type for t in tensors if t is not None} == {"meta"}
    monkeypatch.setattr(pair.bottom, "_placed", lambda x: torch.from_numpy(x).float())
    with pytest.raises(RuntimeError, match="device"):
        pair.step(3)


def test_a_gpu_that_is_absent_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match="device = 'cuda': torch finds no GPU on this machine, set device"):
        Bottom(SplitNetwork(architecture="mlp"), COLUMNS, TRAINING, Keys.under(b"s"), device="cuda")
    assert placed("cpu") == torch.device("cpu")
