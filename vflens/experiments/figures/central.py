"""Central training of logistic regression on all columns at once, for sweeps and figures.

A federation adds its parties' logits and sends all of them the same gradient. So its parameters are those of
central training on the same batches (to 1e-10: ``tests/unit/experiments/figures/test_central.py``), and a
sweep over vertical splits trains once.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vflens.errors import ConfigError
from vflens.models.settings import Training
from vflens.models.softmax_regression import LinearBlock, batches, log_softmax, loss_gradient, one_hot
from vflens.types import Array

#: As in the scripts of Rassouli et al., whose 1,000 epochs are 1,001.
AUTHORS = Training(optimizer="adam", epochs=1001, batch_size=1000, learning_rate=0.1, l2=1e-4)
_EVERY, _SLOWER = 100, 1.5


@dataclass(frozen=True, eq=False)
class Model:
    """Softmax regression: ``weight`` (k, d), ``bias`` (k,)."""

    weight: Array
    bias: Array

    def log_scores(self, x: Array) -> Array:
        """Log-probabilities (n, k) of ``x`` (n, d)."""
        return log_softmax(x @ self.weight.T + self.bias)

    def accuracy(self, x: Array, labels: Array) -> float:
        """Share of the rows of ``x`` (n, d) with the largest score at their label, int (n,)."""
        return float((self.log_scores(x).argmax(axis=1) == labels).mean())


def train(
    x: Array,
    labels: Array,
    classes: int,
    training: Training,
    rng_of_epoch: Callable[[int], np.random.Generator],
    *,
    authors_schedule: bool = False,
) -> Model:
    """Train on ``x`` (n, d) float64 and ``labels`` (n,) as the federation does, from zero.

    Args:
        x: all parties' columns.
        labels: integers below ``classes``.
        classes: k.
        training: as in a federation.
        rng_of_epoch: the generator of an epoch's batches.
        authors_schedule: divide the rate by 1.5 when the mean loss of an epoch divisible by 100, penalty
            included, exceeds that of 100 epochs before.

    Raises:
        ConfigError: ``training`` asks for early stopping.
    """
    if training.patience:
        raise ConfigError(f"patience = {training.patience}: sweeps train to the end, set it to 0")
    block = LinearBlock(x.shape[1], classes, bias=True, training=training)
    y, rows = one_hot(labels, classes), np.arange(len(x), dtype=np.int32)
    before = np.inf
    for epoch in range(training.epochs):
        losses = []
        for batch in batches(rows, training.batch_size, rng_of_epoch(epoch)):
            inputs = x[batch]
            loss, gradient = loss_gradient(block.forward(inputs), y[batch])
            losses.append(loss + (_penalty(block, training) if authors_schedule else 0.0))
            block.learn(inputs, gradient)
        if authors_schedule and epoch % _EVERY == 0:
            if sum(losses) > before:
                block.slow_down(_SLOWER)
            before = sum(losses)
    parameters = block.parameters()
    return Model(parameters["weight"], parameters["bias"])


def _penalty(block: LinearBlock, training: Training) -> float:
    bias = block.bias if block.bias is not None else np.zeros(0)
    return training.l2 * (float(np.vdot(block.weight, block.weight)) + float(bias @ bias))
