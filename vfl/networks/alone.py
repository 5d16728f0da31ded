"""A split network whose passive parties send nothing: what the active party learns on its own columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from vfl.federation import Federation
from vfl.logistic import batches, one_hot
from vfl.networks.training import Top
from vfl.types import Array, ColumnInfo, Exchange, Phase


def train_network_alone(
    federation: Federation,
    columns: Sequence[ColumnInfo],
    x: Array,
    labels: Array,
    rows: Array,
    *,
    secret: bytes,
    rng: np.random.Generator,
    device: str = "cpu",
) -> Callable[[Array], Array]:
    """Trained on ``rows`` of ``x`` (n, d) as the federation trains; gives log-probabilities (m, k) of other rows (m, d)."""
    network, training = federation.network, federation.training
    assert network is not None
    width = federation.combined_width  # of nothing: zeros stand for what the others would send
    if columns:
        width = network.embedding_width(columns) if network.combine == "sum" else 0
    model = Top(
        network,
        columns,
        width=width,
        classes=federation.n_classes,
        training=training,
        secret=secret,
        device=device,
    )
    step = 0
    for epoch in range(training.epochs):
        for batch in batches(rows, training.batch_size, rng):
            exchange = Exchange("alone", Phase.TRAIN, epoch, step)
            nothing = np.zeros((len(batch), width))
            y = one_hot(labels[batch], federation.n_classes)
            _, gradient = model.loss_gradient(nothing, x[batch], y, exchange)
            model.learn(x[batch], gradient, exchange)
            step += 1

    def scores(new: Array) -> Array:
        """Log-probabilities float64 (n, k) of the rows ``new`` (n, d)."""
        nothing = np.zeros((len(new), width))
        return model.log_scores(nothing, new, Exchange("alone", Phase.PREDICT, 1, 0))

    return scores
