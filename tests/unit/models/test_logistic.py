"""Softmax regression cut vertically, against the textbook, central training and other people's solvers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.special
from laboratory import THREE, close, federation
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from vflens.errors import StorageError
from vflens.models.alone import train_alone
from vflens.models.families.softmax_regression import SoftmaxRegression
from vflens.models.part import Keys, Site, plain
from vflens.models.settings import Training
from vflens.models.softmax_regression import (
    LinearBlock,
    batches,
    log_softmax,
    loss_gradient,
    one_hot,
)
from vflens.numerics.optimizer import Adam, Sgd
from vflens.randomness import stream
from vflens.types import Array, ColumnInfo

RNG = np.random.default_rng(0)
Step = Callable[[Array, Array], Array]


def _objective(theta: Array, x: Array, y: Array, l2: float) -> float:
    """Mean cross-entropy plus l2·Σθ², the last column of θ (k, d+1) being the bias; by hand."""
    theta = theta.reshape(y.shape[1], -1)
    z = x @ theta[:, :-1].T + theta[:, -1]
    entropies = scipy.special.logsumexp(z, axis=1) - (y * z).sum(axis=1)
    return float(entropies.mean() + l2 * (theta**2).sum())


class _Captured(Sgd):
    """Keeps the gradient that it was given."""

    def update(self, theta: Array, gradient: Array) -> None:
        self.gradient = gradient.copy()


def _gradient(block: LinearBlock, x: Array, dz: Array) -> Array:
    """What ``block`` learns with: (k, d) or, with a bias, (k, d+1)."""
    block._optimizer = captured = _Captured(0, 1.0)
    block.learn(x, dz)
    k, d = block.weight.shape
    weight = captured.gradient[: k * d].reshape(k, d)
    return weight if block.bias is None else np.column_stack([weight, captured.gradient[k * d :]])


def _differences(f: Callable[[Array], float], at: Array, h: float = 1e-6) -> Array:
    eye = np.eye(at.size)
    return np.array([(f(at + h * e) - f(at - h * e)) / (2 * h) for e in eye])


# --- loss and gradient


@pytest.mark.parametrize(("n", "k"), [(1, 2), (7, 2), (5, 4), (1, 5)])
@pytest.mark.parametrize("mass", [1, 0.5])  # a defence may give soft labels that do not add up to one
def test_loss_and_its_gradient_in_the_logits(n: int, k: int, mass: float) -> None:
    z, y = RNG.normal(size=(n, k)), mass * RNG.dirichlet(np.ones(k), n)
    loss, gradient = loss_gradient(z, y)

    def f(flat: Array) -> float:
        return float(-(y * scipy.special.log_softmax(flat.reshape(n, k), axis=1)).sum() / n)

    assert loss == pytest.approx(f(z.ravel()), rel=1e-13)
    np.testing.assert_allclose(gradient.ravel(), _differences(f, z.ravel()), atol=1e-9)
    assert gradient.flags.c_contiguous


def test_adam_forgets_gradients_that_ended_long_ago() -> None:
    """Their moments would fade to subnormal numbers, which cost a step five times as much."""
    adam, theta = Adam(2, 1e-3), np.ones(2)
    adam.update(theta, np.array([1.0, 1.0]))
    for _ in range(7000):
        adam.update(theta, np.array([0.0, 1.0]))
    moments = adam.state()["moments"]
    assert moments[0, 0] == 0
    assert (np.abs(moments[moments != 0]) > np.finfo(float).tiny).all()


@pytest.mark.parametrize("shape", [(1, 4), (6, 1), (6, 4)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_loss_leaves_its_arguments_alone(shape: tuple[int, int], order: str) -> None:
    z, y = np.asarray(RNG.normal(size=shape), order=order), np.asarray(RNG.random(shape), order=order)  # type: ignore[call-overload]
    before = z.copy(), y.copy()
    loss_gradient(z, y)
    np.testing.assert_array_equal((z, y), before)
    z.setflags(write=False)
    y.setflags(write=False)
    loss_gradient(z, y)


def test_the_penalty_can_spare_the_bias() -> None:
    x, y = RNG.normal(size=(9, 3)), RNG.dirichlet(np.ones(4), 9)
    training = Training(l2=0.03, learning_rate=0.3, optimizer="sgd", penalise_bias=False)
    block = LinearBlock(3, 4, bias=True, training=training)
    block.learn(x, RNG.normal(size=(9, 4)))
    assert block.bias is not None
    theta = np.column_stack([block.weight, block.bias]).ravel()

    def objective(theta: Array) -> float:
        return _objective(theta, x, y, 0.0) + 0.03 * float((theta.reshape(4, 4)[:, :-1] ** 2).sum())

    found = _gradient(block, x, loss_gradient(block.forward(x), y)[1])
    np.testing.assert_allclose(found, _differences(objective, theta).reshape(4, 4), atol=1e-8)


@pytest.mark.parametrize("l2", [0.0, 0.03])
@pytest.mark.parametrize("bias", [True, False])
def test_a_block_learns_with_the_gradient_of_the_penalised_loss(l2: float, bias: bool) -> None:
    x, y = RNG.normal(size=(9, 3)), RNG.dirichlet(np.ones(4), 9)
    block = LinearBlock(3, 4, bias=bias, training=Training(l2=l2, learning_rate=0.3, optimizer="sgd"))
    block.learn(x, RNG.normal(size=(9, 4)))  # away from zero, where a penalty would not show
    theta = np.column_stack([block.weight, np.zeros(4) if block.bias is None else block.bias])
    expected = _differences(lambda t: _objective(t, x, y, l2), theta.ravel()).reshape(4, 4)
    found = _gradient(block, x, loss_gradient(block.forward(x), y)[1])
    np.testing.assert_allclose(found, expected if bias else expected[:, :-1], atol=1e-8)


def test_log_softmax_is_scipys_and_does_not_overflow() -> None:
    z = np.concatenate([RNG.normal(size=(20, 5)) * 10.0**e for e in (-3, 0, 2, 5)])
    np.testing.assert_allclose(log_softmax(z), scipy.special.log_softmax(z, axis=1), rtol=1e-13, atol=1e-15)
    far = log_softmax(np.array([[0.0, 1e308], [-1e308, -1e308]]))
    np.testing.assert_allclose(far, [[-1e308, 0], [np.log(0.5), np.log(0.5)]], rtol=1e-15)


def test_one_hot_marks_the_label() -> None:
    assert one_hot(np.array([2, 0]), 3).tolist() == [[0, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize(("n", "size"), [(10, 4), (8, 4), (3, 10), (1, 1)])
def test_batches_are_a_partition_in_random_order(n: int, size: int) -> None:
    rows = np.arange(100, 100 + n, dtype=np.int32)
    found = batches(rows, size, np.random.default_rng(1))
    assert sorted(np.concatenate(found).tolist()) == rows.tolist()
    assert [len(b) for b in found] == [size] * (n // size) + ([n % size] if n % size else [])
    assert {b.dtype for b in found} == {np.dtype(np.int32)}


# --- optimisers


def _adam(rate: float) -> Step:
    """Kingma and Ba's algorithm 1, line by line."""
    m, v, t = np.zeros(1), np.zeros(1), 0

    def step(theta: Array, g: Array) -> Array:
        nonlocal m, v, t
        t = t + 1
        m = 0.9 * m + (1 - 0.9) * g
        v = 0.999 * v + (1 - 0.999) * g**2
        m_hat = m / (1 - 0.9**t)
        v_hat = v / (1 - 0.999**t)
        result: Array = theta - rate * m_hat / (np.sqrt(v_hat) + 1e-8)
        return result

    return step


def _sgd(rate: float) -> Step:
    return lambda theta, g: theta - rate * g


@pytest.mark.parametrize(("optimizer", "twin"), [(Adam, _adam), (Sgd, _sgd)])
def test_optimisers_follow_the_textbook(
    optimizer: type[Adam] | type[Sgd], twin: Callable[[float], Step]
) -> None:
    theta = RNG.normal(size=6)
    expected, mine, step = theta.copy(), optimizer(6, 0.07), twin(0.07)
    for t in range(200):
        gradient = RNG.normal(size=6) * (1e-9 if t % 3 else 10)  # ε matters for the small ones
        mine.update(theta, gradient)
        expected = step(expected, gradient)
        np.testing.assert_allclose(theta, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("optimizer", [Adam, Sgd])
def test_an_optimiser_goes_on_where_another_stopped(optimizer: type[Adam] | type[Sgd]) -> None:
    gradients, one, theta = RNG.normal(size=(10, 4)), optimizer(4, 0.1), np.zeros(4)
    for g in gradients[:5]:
        one.update(theta, g)
    heir, copy = optimizer(4, 0.1), theta.copy()
    state = one.state()
    for g in gradients[5:]:
        one.update(theta, g)
    heir.load(state)  # after the other went on: its state is its own
    for g in gradients[5:]:
        heir.update(copy, g)
    assert copy.tobytes() == theta.tobytes()


def test_a_block_of_another_size_is_refused() -> None:
    small = LinearBlock(2, 3, bias=False, training=Training())
    with pytest.raises(
        StorageError,
        match=r"^the checkpoint has 6 parameters, this party's block 9: resume with the same table$",
    ):
        LinearBlock(2, 3, bias=True, training=Training()).load(small.state())


# --- federation against central training


def _central(x: Array, labels: Array, k: int, training: Training, draws: list[list[Array]]) -> Array:
    """Textbook training of θ (k, d+1) on all columns at once, one loop, no cut."""
    padded, theta = np.column_stack([x, np.ones(len(x))]), np.zeros((k, x.shape[1] + 1))
    step = (_adam if training.optimizer == "adam" else _sgd)(training.learning_rate)
    for epoch in draws:
        for rows in epoch:
            c = scipy.special.softmax(padded[rows] @ theta.T, axis=1)
            c[np.arange(len(rows)), labels[rows]] -= 1
            theta = step(theta, c.T @ padded[rows] / len(rows) + 2 * training.l2 * theta)
    return theta


@pytest.mark.parametrize("passive", [["passive"], THREE["passive"]], ids=["one", "three"])
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_a_federation_is_central_training_on_all_columns(
    tmp_path: Path, passive: list[str], optimizer: str
) -> None:
    settings = {"epochs": 12, "batch_size": 20, "learning_rate": 0.05, "l2": 0.01, "optimizer": optimizer}
    local = federation(tmp_path, parties={"passive": passive}, training=settings, disclose=[])
    local.run()
    run = local.active.run
    names = sorted(local.passive)
    x = np.hstack([local.passive[n].run.truth[:] for n in names] + [run.truth[:]])
    training = run.federation.training
    draws = [
        batches(run.federation.train, 20, stream(local.coordinator.secret, "batches", epoch))
        for epoch in range(12)
    ]
    theta = _central(x, local.active.run.labels, 3, training, draws)
    models = [local.passive[n].run.model.parameters() for n in names] + [run.model.parameters()]
    np.testing.assert_allclose(np.hstack([m["weight"] for m in models]), theta[:, :-1], atol=1e-10)
    assert ["bias" in m for m in models] == [True] + [False] * len(passive)
    np.testing.assert_allclose(models[0]["bias"], theta[:, -1], atol=1e-10)
    rows = run.federation.predict
    expected = scipy.special.log_softmax(x[rows] @ theta[:, :-1].T + theta[:, -1], axis=1)
    np.testing.assert_allclose(local.active.predictions.received(rows), expected, atol=1e-10)


def _alone(x: Array, labels: Array, rows: Array, training: Training, rng: np.random.Generator) -> Array:
    """θ (k, d+1) of a model on ``rows`` of ``x`` (n, d) alone, from its scores at 0 and at each unit vector.

    Steps leave the sum over classes at 0, where it began: so logits follow from scores.
    """
    columns, k = [ColumnInfo(str(j), 0.0, 1.0) for j in range(x.shape[1])], int(labels.max()) + 1
    site = Site(
        party="alone",
        columns=columns,
        features=len(columns),
        classes=k,
        training=training,
        keys=Keys.under(b"no layer draws"),
        wrap=plain,
        received=k,
        holds_bias=True,
    )
    asked = np.vstack([x, np.zeros(x.shape[1]), np.eye(x.shape[1])])
    scores = train_alone(SoftmaxRegression(), site, asked.__getitem__, labels, rows, rng=rng)
    found = scores(np.arange(len(x), len(asked)))
    bias, *units = found - found.mean(axis=1, keepdims=True)
    return np.column_stack([*(unit - bias for unit in units), bias])


def test_full_batches_reach_the_optimum_of_other_solvers() -> None:
    """Strongly convex: L-BFGS, scikit-learn and 3000 gradient steps agree to 1e-6 in every parameter."""
    x, labels, l2 = RNG.random((60, 3)), RNG.integers(0, 3, 60), 0.01
    training = Training(optimizer="sgd", epochs=3000, batch_size=60, learning_rate=0.8, l2=l2)
    mine = _alone(x, labels, np.arange(60), training, RNG)
    y = one_hot(labels, 3)
    best = minimize(lambda t: _objective(t, x, y, l2), np.zeros(12), method="BFGS", options={"gtol": 1e-9})
    assert _objective(mine.ravel(), x, y, l2) <= best.fun + 1e-10
    # scikit-learn's penalty is Σθ²/(2C) beside the sum of losses and spares its intercept: ours is a column.
    padded = np.column_stack([x, np.ones(60)])
    theirs = LogisticRegression(C=1 / (2 * l2 * 60), fit_intercept=False, tol=1e-12, max_iter=10_000)
    np.testing.assert_allclose(mine, theirs.fit(padded, labels).coef_, atol=1e-6)


def test_training_alone_uses_the_rows_it_was_given() -> None:
    x, labels = RNG.random((30, 2)), RNG.integers(0, 2, 30)
    training = Training(epochs=4, batch_size=7, l2=0.02)
    place = RNG.permutation(90)[:30]  # among other rows
    among, their = np.full((90, 2), np.nan), np.zeros(90, int)
    among[place], their[place] = x, labels
    mine = _alone(among, their, place, training, np.random.default_rng(5))
    rng = np.random.default_rng(5)
    draws = [np.split(rng.permutation(30), [7, 14, 21, 28]) for _ in range(4)]
    expected = _central(x, labels, 2, training, draws)
    np.testing.assert_allclose(mine, expected, atol=1e-12)


def test_closing_a_federation_that_never_ran_is_harmless(tmp_path: Path) -> None:
    local = federation(tmp_path)
    close(local)
    assert not (tmp_path / "active" / "federation.json").exists()
