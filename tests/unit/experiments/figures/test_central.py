"""Central training: the federation's parameters, and the schedule of the authors' scripts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from laboratory import federation

from vflens.errors import ConfigError
from vflens.experiments.figures.central import AUTHORS, train
from vflens.models.settings import Training
from vflens.models.softmax_regression import log_softmax
from vflens.randomness import stream

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_the_federation_gives_the_parameters_of_central_training(tmp_path: Path, optimizer: str) -> None:
    settings = {"epochs": 15, "batch_size": 20, "learning_rate": 0.05, "l2": 0.01, "optimizer": optimizer}
    local = federation(tmp_path, parties={"passive": ["a", "b"]}, training=settings, disclose=[])
    local.run()
    run = local.active.run
    names = sorted(local.passive)
    x = np.hstack([local.passive[n].run.truth[:] for n in names] + [run.truth[:]])
    rows = run.federation.train
    model = train(
        x[rows],
        local.active.run.labels[rows],
        3,
        run.federation.training,
        lambda epoch: stream(local.coordinator.secret, "batches", epoch),
    )
    parts = [local.passive[n].run.model.parameters() for n in names] + [run.model.parameters()]
    np.testing.assert_allclose(np.hstack([p["weight"] for p in parts]), model.weight, atol=1e-10)
    np.testing.assert_allclose(parts[0]["bias"], model.bias, atol=1e-10)
    asked = run.federation.predict
    np.testing.assert_allclose(
        local.active.predictions.received(asked), model.log_scores(x[asked]), atol=1e-10
    )


def test_the_authors_schedule_slows_down_when_the_loss_rises() -> None:
    """Torch's Adam and the same rule, on a rate so high that the loss does rise."""
    torch = pytest.importorskip("torch")
    x, labels = RNG.random((60, 3)), RNG.integers(0, 3, 60)
    training = AUTHORS.model_copy(update={"epochs": 401, "learning_rate": 3.0, "batch_size": 25, "l2": 1e-3})
    model = train(x, labels, 3, training, np.random.default_rng, authors_schedule=True)
    linear = torch.nn.Linear(3, 3, dtype=torch.float64)
    for p in linear.parameters():
        torch.nn.init.zeros_(p)
    adam = torch.optim.Adam(linear.parameters(), lr=3.0)
    before, slowed = float("inf"), 0
    for epoch in range(401):
        order, total = np.random.default_rng(epoch).permutation(np.arange(60, dtype=np.int32)), 0.0
        for start in range(0, 60, 25):
            rows = order[start : start + 25]
            adam.zero_grad()
            z = linear(torch.from_numpy(x[rows]))
            loss = torch.nn.functional.cross_entropy(z, torch.from_numpy(labels[rows]))
            loss = loss + 1e-3 * sum((p**2).sum() for p in linear.parameters())
            loss.backward()
            total += loss.item()
            adam.step()
        if epoch % 100 == 0:
            if total > before:
                adam.param_groups[0]["lr"] /= 1.5
                slowed += 1
            before = total
    assert slowed
    np.testing.assert_allclose(model.weight, linear.weight.detach().numpy(), atol=1e-6)
    np.testing.assert_allclose(model.bias, linear.bias.detach().numpy(), atol=1e-6)


def test_scores_and_accuracy_are_those_of_softmax() -> None:
    x, labels = RNG.random((40, 2)), RNG.integers(0, 2, 40)
    model = train(x, labels, 2, Training(epochs=3), np.random.default_rng)
    z = x @ model.weight.T + model.bias
    np.testing.assert_allclose(model.log_scores(x), log_softmax(z))
    assert model.accuracy(x, labels) == np.mean(z.argmax(axis=1) == labels)


def test_early_stopping_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^patience = 3: sweeps train to the end, set it to 0$"):
        train(np.zeros((2, 1)), np.array([0, 1]), 2, Training(patience=3), np.random.default_rng)
