"""The hooks inside a party, extended by the plug-ins of another package: on a batch, its labels, the loss."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accidents import over_grpc, rebuild_all, train_until
from foreign import installed
from laboratory import close, experiment, federation, finish, trained, transcripts
from oneprocess import LocalFederation

from vflens.errors import ConfigError, PluginError
from vflens.experiments.run.run import run
from vflens.plugins.defense import Context
from vflens.protocol.acts import Step
from vflens.types import Array, Exchange, Owner, Phase, Point

MODULES = {
    "plugins": '''
from typing import Any, ClassVar

import numpy as np

from vflens.plugins.defense import Defense


class Shaken(Defense):
    """Moves inputs by noise that is drawn per exchange, in predictions per row."""

    def on_batch(self, x, ctx):
        return x + ctx.draw(lambda rng, n: rng.normal(size=(n, x.shape[1])))


class Smooth(Defense):
    """Moves labels towards a draw that all data parties have."""

    def on_batch_labels(self, y, ctx):
        return 0.9 * y + 0.1 * ctx.common_stream("smooth").random(y.shape)


class Together(Smooth):
    together: ClassVar[bool] = True
    strength: float = 1.0

    def on_batch(self, x, ctx):
        return self.strength * x * ctx.common_stream("smooth").random((len(x), 1))


class Mixed(Defense):
    mixes_rows: ClassVar[bool] = True

    def on_batch(self, x, ctx):
        return x[::-1].copy()


class Small(Defense):
    """Pulls embeddings, or what arrived, towards the mean of what they must not reveal."""

    answer: Any = None

    def penalty(self, m, h, private, ctx):
        term = ((h - private.mean()) ** 2).mean()
        return {"vector": h, "nothing": None, "nan": term * float("nan")}.get(self.answer, term)
''',
}
ENTRY_POINTS = """[vflens.defenses]
their_shaken = inner_package.plugins:Shaken
their_smooth = inner_package.plugins:Smooth
their_together = inner_package.plugins:Together
their_mixed = inner_package.plugins:Mixed
their_small = inner_package.plugins:Small
"""
NETWORK = {"architecture": "mlp", "width": 4, "hidden": [5], "top": [6], "precision": "float64"}
SETTINGS: dict[str, Any] = {
    "model": NETWORK,
    "training": {"epochs": 2, "batch_size": 20, "learning_rate": 0.05},
    "limits": {"checkpoint_steps": 3},
    "attacks": [],
    "disclose": [],
}
EXCHANGE = Exchange("tiny/run", Phase.TRAIN, 0, 0)
EVERYWHERE = [
    *({"name": "their_shaken", "at": at} for at in ("passive", "active")),
    *({"name": "their_small", "at": at} for at in ("passive", "active")),
    {"name": "their_smooth", "at": "active"},
]
LABELS_AND_MIXED = [{"name": "grad_perturb", "at": "active"}, {"name": "their_mixed", "at": "active"}]


@pytest.fixture(autouse=True)
def _package(tmp_path: Path) -> Iterator[None]:
    with installed("inner_package", MODULES, ENTRY_POINTS, tmp_path / "site"):
        yield


def _prepared(home: Path, *defenses: Mapping[str, Any], **changes: Any) -> LocalFederation:
    local = federation(home, **{**SETTINGS, **changes}, defenses=list(defenses))
    local.coordinator.prepare()
    return local


# -- one batch


@pytest.mark.parametrize("model", [NETWORK, None], ids=["network", "softmax regression"])
def test_a_batch_is_changed_before_the_model_sees_it(tmp_path: Path, model: Any) -> None:
    """Again in the same exchange alike, in another exchange otherwise; in a prediction by the row."""
    local = _prepared(tmp_path, {"name": "their_shaken", "at": "passive"}, model=model)
    party, rows = local.passive["passive"], local.coordinator.aligned.train[:20]
    first, again = (party.inputs_of(rows, EXCHANGE) for _ in range(2))
    later = party.inputs_of(rows, EXCHANGE._replace(step=1))
    others = party.inputs_of(rows[::-1].copy(), EXCHANGE)
    np.testing.assert_array_equal(first, again)
    for other in (later, others[::-1]):
        assert np.abs(first - other).min() > 0
    released = party.step(Step(EXCHANGE, rows, None)).released
    assert released is not None
    np.testing.assert_array_equal(released.tensor("embedding"), party.run.model.forward(first, EXCHANGE))

    asked = local.coordinator.aligned.predict
    requests = [EXCHANGE._replace(phase=Phase.PREDICT, round=1, step=s) for s in (0, 1)]
    whole, single = party.inputs_of(asked, requests[0]), party.inputs_of(asked[3:4], requests[1])
    np.testing.assert_array_equal(whole[3:4], single)
    close(local)


def test_labels_of_a_batch_go_into_loss_gradient_and_step(tmp_path: Path) -> None:
    defended, plain = (
        _prepared(tmp_path / name, *defenses)
        for name, defenses in (("a", [{"name": "their_smooth", "at": "active"}]), ("b", []))
    )
    rows = defended.coordinator.aligned.train[:20]
    summed = np.random.default_rng(0).normal(size=(20, 4))
    sent, labels = [], []
    for local in (defended, plain):
        received = local.coordinator.gate.release(Point.EMBEDDING, EXCHANGE, rows, {"embedding": summed})
        released = local.active.step(Step(EXCHANGE, rows, received)).released
        assert released is not None
        sent.append(released.tensor("gradient"))
        labels.append(local.active.run.soft_labels[rows])
    active = plain.active
    smoothed = defended.active.chain.fold("on_batch_labels", labels[0], EXCHANGE, rows)
    np.testing.assert_array_equal(labels[0], labels[1])
    fresh = _prepared(tmp_path / "c").active
    due = fresh.run.model.loss_gradient(summed, fresh.inputs_of(rows, EXCHANGE), smoothed, EXCHANGE)
    np.testing.assert_array_equal(sent[0], due.gradient)
    assert np.abs(sent[0] - sent[1]).max() > 1e-4
    due.learn()
    for local in (defended, plain):
        local.active.settle()
    assert _bits(defended.active) == _bits(fresh) != _bits(active)
    for local in (defended, plain):
        close(local)


def _bits(party: Any) -> bytes:
    return b"".join(array.tobytes() for _, array in sorted(party.run.model.state().items()))


def test_data_parties_draw_the_same_together_and_a_coordinator_nothing(tmp_path: Path) -> None:
    local = _prepared(tmp_path, *({"name": "their_together", "at": at} for at in ("passive", "active")))
    rows = np.arange(5, dtype=np.int32)
    drawn = [p.chain.fold("on_batch", np.ones((5, 1)), EXCHANGE, rows) for p in local.data_parties.values()]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    later = local.active.chain.fold("on_batch", np.ones((5, 1)), EXCHANGE._replace(step=1), rows)
    assert np.abs(later - drawn[0]).min() > 0
    coordinator = Context(
        Owner("coordinator"), EXCHANGE, rows, {}, hook="on_scores", position=0, secret=b"secret"
    )
    with pytest.raises(PluginError, match="on_scores at 'coordinator' draws what the data parties share"):
        coordinator.common_stream("smooth")
    close(local)


# -- the loss


def _slope(of: Callable[[], float], place: Array, index: tuple[int, ...]) -> float:
    """The derivative of ``of`` in one number of ``place``, by central differences."""
    step, sides = 1e-6, []
    for sign in (1, -1):
        place[index] += sign * step
        sides.append(of())
        place[index] -= sign * step
    return (sides[0] - sides[1]) / (2 * step)


@pytest.mark.parametrize("name", ["their_small", "mid", "distance_correlation"])
def test_a_passive_partys_model_learns_from_gradient_and_penalty(tmp_path: Path, name: str) -> None:
    """Its gradient is that of g·h + penalty, against differences in its parameters."""
    local = _prepared(tmp_path, {"name": name, "at": "passive"})
    party, rows = local.passive["passive"], local.coordinator.aligned.train[:20]
    model: Any = party.run.model
    x = party.inputs_of(rows, EXCHANGE)
    received = np.random.default_rng(1).normal(size=(20, 4))
    theta, learned = model._theta, list[Array]()
    model._apply = lambda gradient, *rest: learned.append(gradient.copy())
    model.forward(x, EXCHANGE)
    model.learn(x, received, EXCHANGE)

    def loss() -> float:
        model.forward(x, EXCHANGE)
        h = model._pending[1]
        added = model._added_by(model.module["bottom"], h, model._placed(x))
        return float((h.detach().numpy() * received).sum() + added.detach())

    places = np.random.default_rng(2).integers(0, len(theta), 12)
    slopes = [_slope(loss, theta, (int(i),)) for i in places]
    np.testing.assert_allclose(learned[0][places], slopes, rtol=1e-4, atol=1e-7)
    assert party.chain.unfired() == []
    close(local)


@pytest.mark.parametrize("name", ["their_small", "mid", "distance_correlation"])
def test_the_active_partys_penalty_is_in_the_gradient_that_leaves(tmp_path: Path, name: str) -> None:
    local = _prepared(tmp_path, {"name": name, "at": "active"})
    active, rows = local.active, local.coordinator.aligned.train[:20]
    received = np.random.default_rng(3).normal(size=(20, 4))
    model: Any = active.run.model
    x, y = active.inputs_of(rows, EXCHANGE), active.run.soft_labels[rows]
    found = model.loss_gradient(received, x, y, EXCHANGE)

    def loss() -> float:
        value: float = model.loss_gradient(received, x, y, EXCHANGE).loss
        added = model._added_by(model.module["top"], model._placed(received), model._placed(y))
        return value + float(added.detach())

    for index in ((0, 0), (7, 3), (19, 1)):
        slope = _slope(loss, received, index)
        np.testing.assert_allclose(found.gradient[index], slope, rtol=1e-4, atol=1e-8)
    close(local)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            "vector",
            r"Small.penalty must return one finite number as a tensor, it returned torch.Size\(\[20, 4\]\)",
        ),
        ("nothing", "it returned None"),
        ("nan", "it returned nan"),
    ],
)
def test_a_penalty_that_is_no_number_is_refused(tmp_path: Path, answer: str, words: str) -> None:
    local = _prepared(tmp_path, {"name": "their_small", "at": "passive", "answer": answer})
    party, rows = local.passive["passive"], local.coordinator.aligned.train[:20]
    x = party.inputs_of(rows, EXCHANGE)
    with pytest.raises(PluginError, match=words):
        party.run.model.learn(x, np.zeros((20, 4)), EXCHANGE)
    close(local)


# -- both links, accidents


@pytest.mark.parametrize("aggregator", ["coordinator", "active"])
def test_the_same_bits_over_grpc_and_after_a_restart(tmp_path: Path, aggregator: str) -> None:
    found = []
    for name in ("straight", "broken"):
        home = tmp_path / name
        local = _prepared(home, *EVERYWHERE, aggregator=aggregator)
        if name == "broken":
            with over_grpc(local):
                train_until(local, 5)
                rebuild_all(local)
                local.coordinator.train()
                finish(local)
        else:
            local.coordinator.train()
            finish(local)
        close(local)
        found.append((trained(local), transcripts(home)))
    assert found[0] == found[1]


# -- refusals


@pytest.mark.parametrize(
    ("defenses", "changes", "words"),
    [
        (
            [{"name": "their_smooth", "at": "passive"}],
            {},
            "defence 'their_smooth' at passive 'passive' would never act: it changes batch_labels",
        ),
        (
            [{"name": "their_shaken", "at": "coordinator"}],
            {},
            "defence 'their_shaken' at coordinator 'coordinator' would never act",
        ),
        (
            [{"name": "their_small", "at": "passive"}],
            {"model": None},
            "defence 'their_small' at 'passive' has nothing to act on, softmax regression has no layers",
        ),
        (
            [{"name": "their_together", "at": "active"}],
            {},
            "defence 'their_together' differs between 'active' and 'passive': the data parties draw it "
            "together, so put it at each of them with the same settings",
        ),
        (
            [
                {"name": "their_together", "at": "active"},
                {"name": "their_together", "at": "passive", "strength": 2.0},
            ],
            {},
            "defence 'their_together' differs between",
        ),
        (
            [{"name": "their_mixed", "at": "passive"}, {"name": "dp_laplace", "at": "passive"}],
            {},
            "defence 'their_mixed' at 'passive' puts one row into several, and 'dp_laplace' states an ε of "
            "each row: use one of them",
        ),
        (
            [{"name": "dp_laplace", "at": "passive"}, {"name": "their_mixed", "at": "passive"}],
            {},
            "defence 'their_mixed' at 'passive' puts one row into several, and 'dp_laplace' states an ε of "
            "each row: use one of them",
        ),
        *(
            (
                tables,
                {},
                "defence 'their_mixed' at 'active' puts one row into several, and 'grad_perturb' states an ε "
                "of each row: use one of them",
            )
            for tables in (LABELS_AND_MIXED, LABELS_AND_MIXED[::-1])
        ),
    ],
    ids=[
        *("role", "coordinator", "family", "one party only", "other settings", "an ε", "an ε first"),
        *("an ε of labels first", "an ε of labels"),
    ],
)
def test_what_cannot_act_is_refused_before_the_start(
    tmp_path: Path, defenses: Any, changes: dict[str, Any], words: str
) -> None:
    refused = experiment(tmp_path, **{**SETTINGS, **changes}, defenses=defenses)
    with pytest.raises(ConfigError, match=f"^{re.escape(words)}"):
        run(refused, in_process=True)
