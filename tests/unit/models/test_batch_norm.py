"""Batch norm in a split network: running moments follow a batch once, when it is learned from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from vflens.attacks.helpers.networks.mixmatch import mixmatch
from vflens.defenses.passport import Passport
from vflens.errors import ProtocolError
from vflens.models.families.split_network import SplitNetwork
from vflens.models.networks.architectures import bottom
from vflens.models.networks.layers import BatchNormModule
from vflens.models.networks.parameters import from_arrays
from vflens.models.networks.training import Bottom, Top
from vflens.models.part import Keys, LossGradient, Wrap, plain
from vflens.models.settings import Training
from vflens.plugins.defense import Context
from vflens.types import Array, ColumnInfo, Exchange, Owner, Phase

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
PIXELS = tuple(ColumnInfo(f"p{i}", 0.0, 1.0, pixel=(i // 4, i % 4)) for i in range(24))
NETWORK = SplitNetwork(architecture="cnn", batch_norm=True, top=(5,))
#: The top model has a residual block too, with four batch norms of 512 channels.
RESIDUAL = SplitNetwork(architecture="resnet18", cut=8)
TRAINING = Training(learning_rate=0.01, batch_size=8)
MEAN = "bottom.5.running_mean"


def _exchange(step: int, phase: Phase = Phase.TRAIN) -> Exchange:
    return Exchange("run", phase, 0, step)


def _passport(module: nn.Module) -> nn.Module:
    ctx = Context(
        Owner("p"), _exchange(0), np.zeros(0, np.int32), {}, hook="wrap_model", position=0, secret=b"defence"
    )
    return Passport(largest_mean=3.0).wrap_model(module, ctx)


class Pair:
    """A passive party's bottom and the active party's models, on made-up images."""

    def __init__(self, network: SplitNetwork = NETWORK, wrap: Wrap = plain, device: str = "cpu") -> None:
        rng = np.random.default_rng(0)
        self.x, self.own = rng.random((2, 40, 24))
        self.y = np.eye(3)[rng.integers(0, 3, 40)]
        width = network.embedding_width(PIXELS)
        self.bottom = Bottom(network, PIXELS, TRAINING, Keys.under(b"p"), wrap, device=device)
        self.top = Top(
            network,
            PIXELS,
            width=width,
            classes=3,
            training=TRAINING,
            keys=Keys.under(b"a"),
            device=device,
            peers=[PIXELS],
        )

    def rows(self, step: int) -> Array:
        return np.random.default_rng(step).permutation(40)[:8]

    def sent(self, step: int) -> Array:
        return self.bottom.forward(self.x[self.rows(step)], _exchange(step))

    def answer(self, step: int, h: Array) -> LossGradient:
        rows = self.rows(step)
        return self.top.loss_gradient(h, self.own[rows], self.y[rows], _exchange(step))

    def learn(self, step: int, answer: LossGradient) -> None:
        answer.learn()
        self.bottom.learn(self.x[self.rows(step)], answer.gradient, _exchange(step))

    def step(self, step: int) -> float:
        answer = self.answer(step, self.sent(step))
        self.learn(step, answer)
        return answer.loss

    def states(self) -> tuple[dict[str, Array], dict[str, Array]]:
        return self.bottom.state(), self.top.state()

    def bits(self) -> bytes:
        return b"".join(n.encode() + a.tobytes() for state in self.states() for n, a in state.items())

    def restarted(self, make: Callable[[], Pair]) -> Pair:
        fresh = make()
        for model, state in zip((fresh.bottom, fresh.top), self.states(), strict=True):
            model.load(state)
        return fresh


@pytest.mark.parametrize("device", DEVICES)
def test_it_is_torch_s_batch_norm_once_a_batch_is_learned(device: str) -> None:
    ours, theirs = BatchNormModule(3).to(device), nn.BatchNorm2d(3).to(device)
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        x = (2 + 3 * torch.rand(5, 3, 4, 2, generator=generator)).to(device)
        torch.testing.assert_close(ours(x), theirs(x))
        ours(2 * x), ours(x)  # computed again
        ours.learn(ours.moments)
        for name in ("running_mean", "running_var"):
            torch.testing.assert_close(getattr(ours, name), getattr(theirs, name))
    torch.testing.assert_close(ours.eval()(x), theirs.eval()(x))


@pytest.mark.parametrize("device", DEVICES)
def test_a_batch_computed_again_moves_nothing(device: str) -> None:
    once, often = Pair(device=device), Pair(device=device)
    for step in range(3):
        once.step(step)
        for _ in range(3):
            often.sent(step + 7)
            h = often.sent(step)
            answer = often.answer(step, h)
            often.bottom.forward(often.x, _exchange(0, Phase.PREDICT))
        often.learn(step, answer)
    assert once.bits() == often.bits()
    assert once.states()[0][f"model/{MEAN}"].any()
    assert once.states()[1][f"model/{MEAN}"].any()  # of the active party's own bottom


def test_single_rows_of_a_training_exchange_have_running_moments_and_move_nothing() -> None:
    pair, undisturbed = Pair(), Pair()
    pair.step(0), undisturbed.step(0)
    trained, predicted = (
        pair.top.embeddings(pair.own, _exchange(1, p)) for p in (Phase.TRAIN, Phase.PREDICT)
    )
    np.testing.assert_array_equal(trained, predicted)
    h = np.zeros((40, NETWORK.embedding_width(PIXELS)))
    pair.top.row_gradients(h, pair.own, pair.y, _exchange(1))
    pair.step(1), undisturbed.step(1)
    assert pair.bits() == undisturbed.bits()


@pytest.mark.parametrize(
    "network",
    [
        pytest.param(NETWORK, id="cnn"),
        pytest.param(RESIDUAL, id="resnet18", marks=pytest.mark.facts),  # 11 million parameters, four times
    ],
)
def test_a_restart_in_the_middle_ends_with_the_same_bits(network: SplitNetwork) -> None:
    """The gradient of step 1 arrives after the restart."""
    whole, killed = Pair(network), Pair(network)
    whole.step(0), killed.step(0)
    resumed = killed.restarted(lambda: Pair(network))
    resumed.learn(1, resumed.answer(1, killed.sent(1)))
    whole.step(1)
    whole.step(2), resumed.step(2)
    assert whole.bits() == resumed.bits()
    norms = [n for n in whole.states()[1] if n.startswith("model/top.") and "running_var" in n]
    assert len(norms) == (2 if network is RESIDUAL else 0)


@pytest.mark.parametrize("killed_after", [0, 1, 2])
def test_one_step_stale_a_restart_ends_with_the_same_bits(killed_after: int) -> None:
    """The embedding of a step leaves before the gradient of the one before is learned from."""

    def run(kill: int | None) -> bytes:
        pair, sent = Pair(), {}
        sent[0] = pair.sent(0)
        for step in range(4):
            sent[step + 1] = pair.sent(step + 1)
            pair.learn(step, pair.answer(step, sent[step]))
            if step == kill:
                pair = pair.restarted(Pair)
        return pair.bits()

    assert run(None) == run(killed_after)


def test_disclosed_parameters_embed_as_predictions_do() -> None:
    """So an attack that inverts a disclosed bottom model inverts what the party computes."""
    pair = Pair()
    for step in range(4):
        pair.step(step)
    disclosed = pair.bottom.parameters()
    assert {"5.weight", "5.bias", "5.running_mean", "5.running_var"} < set(disclosed)
    assert {a.dtype for a in disclosed.values()} == {np.dtype(np.float32)}
    np.testing.assert_array_equal(disclosed["5.running_mean"], pair.bottom.state()[f"model/{MEAN}"])
    model = bottom(NETWORK, PIXELS)
    from_arrays(model, disclosed)
    h = pair.bottom.forward(pair.x, _exchange(0, Phase.PREDICT))
    np.testing.assert_array_equal(model.eval()(torch.tensor(pair.x, dtype=torch.float32)).detach().numpy(), h)
    assert not np.allclose(bottom(NETWORK, PIXELS).eval()(torch.rand(40, 24)).detach().numpy(), h)


def test_a_negative_variance_is_refused() -> None:
    model = bottom(NETWORK, PIXELS)
    arrays = Pair().bottom.parameters()
    arrays["5.running_var"][3] = -1
    with pytest.raises(ProtocolError, match=r"'5.running_var' hold a negative variance: load those of a tra"):
        from_arrays(model, arrays)


def test_a_model_completed_by_an_attack_has_the_moments_of_what_it_learned() -> None:
    model = nn.Sequential(bottom(NETWORK, PIXELS), nn.Linear(96, 3))
    x, rng = torch.rand(20, 24), np.random.default_rng(0)
    labelled = x, torch.arange(20) % 3
    learned = mixmatch(model, labelled, lambda n: x[rng.integers(20, size=n)], steps=60, rng=rng)
    with torch.no_grad():
        found = model[0][:5](x).mean(dim=(0, 2, 3))  # type: ignore[index]
    (norm,) = (m for m in learned.modules() if isinstance(m, BatchNormModule))
    torch.testing.assert_close(norm.running_mean, found, rtol=0, atol=0.2)
    assert norm.running_mean.abs().max() > 0.05


def test_one_row_of_one_place_is_standardised_as_in_predictions() -> None:
    """The last batch of an epoch may have one row; torch would refuse it."""
    norm = BatchNormModule(2)
    norm.running_mean.fill_(3.0), norm.running_var.fill_(4.0)
    x = torch.tensor([5.0, 1.0]).reshape(1, 2, 1, 1)
    torch.testing.assert_close(norm(x).flatten(), torch.tensor([1.0, -1.0]))
    norm.learn(norm.moments)
    assert norm.running_mean.tolist() == [3.0, 3.0]


def test_behind_a_passport_there_is_none_and_the_identity_is_disclosed() -> None:
    bare, guarded = Pair(), Pair(wrap=_passport)
    for step in range(2):
        bare.step(step), guarded.step(step)
    shapes: list[Any] = [{n: a.shape for n, a in p.bottom.parameters().items()} for p in (bare, guarded)]
    assert shapes[0] == shapes[1]
    model = bottom(NETWORK, PIXELS)
    from_arrays(model, guarded.bottom.parameters())
    x = torch.rand(4, 16, 3, 2)
    assert torch.equal(model.eval()[5](x), x)  # type: ignore[index]
