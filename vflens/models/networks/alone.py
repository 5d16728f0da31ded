"""A split network whose passive parties send nothing: what the active party learns on its own columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from vflens.models.networks.training import Top
from vflens.models.settings import SplitNetwork, Training
from vflens.models.softmax_regression import batches, one_hot
from vflens.types import Array, ColumnInfo, Exchange, Phase


def train_network_alone(
    network: SplitNetwork,
    x: Array,
    labels: Array,
    rows: Array,
    *,
    training: Training,
    columns: Sequence[ColumnInfo],
    classes: int,
    width: int,
    secret: bytes,
    rng: np.random.Generator,
    device: str = "cpu",
) -> Callable[[Array], Array]:
    """Train on ``rows`` of ``x`` (n, d) as the federation trains; return log-probabilities (m, k) of other
    rows (m, d).

    ``width``: numbers per row that the active party receives in the federation; zeros stand for them here.
    """
    if columns:
        width = network.embedding_width(columns) if network.combine == "sum" else 0
    model = Top(
        network,
        columns,
        width=width,
        classes=classes,
        training=training,
        secret=secret,
        device=device,
    )
    step = 0
    for epoch in range(training.epochs):
        for batch in batches(rows, training.batch_size, rng):
            exchange = Exchange("alone", Phase.TRAIN, epoch, step)
            nothing = np.zeros((len(batch), width))
            y = one_hot(labels[batch], classes)
            _, gradient = model.loss_gradient(nothing, x[batch], y, exchange)
            model.learn(x[batch], gradient, exchange)
            step += 1

    def scores(new: Array) -> Array:
        """Log-probabilities float64 (n, k) of the rows ``new`` (n, d)."""
        nothing = np.zeros((len(new), width))
        return model.log_scores(nothing, new, Exchange("alone", Phase.PREDICT, 1, 0))

    return scores
