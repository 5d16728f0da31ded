"""A model whose passive parties send nothing: what the active party learns on its own columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from vflens.models.family import ModelFamily
from vflens.models.part import Site
from vflens.models.softmax_regression import batches, one_hot
from vflens.types import Array, Exchange, Phase


def train_alone(
    model: ModelFamily,
    site: Site,
    read: Callable[[Array], Array],
    labels: Array,
    rows: Array,
    *,
    rng: np.random.Generator,
) -> Callable[[Array], Array]:
    """Train on ``rows`` as the federation trains; return what gives the scores (m, k) of any m rows.

    ``read`` returns the inputs (m, d) of the rows asked. ``site`` describes the active party, with the width
    that it receives in the federation.
    """
    width, step = model.width_alone(site.columns, site.received), 0
    peers = () if site.columns else site.peers  # its own embedding alone reaches the top
    part = model.active_part(replace(site, received=width, peers=peers))
    for epoch in range(site.training.epochs):
        for batch in batches(rows, site.training.batch_size, rng):
            y = one_hot(labels[batch], site.classes)
            exchange = Exchange("alone", Phase.TRAIN, epoch, step)
            part.loss_gradient(np.zeros((len(batch), width)), read(batch), y, exchange).learn()
            step += 1

    def scores(new: Array) -> Array:
        """Scores float64 (m, k) of the rows ``new`` int (m,)."""
        exchange = Exchange("alone", Phase.PREDICT, 1, 0)
        return part.log_scores(np.zeros((len(new), width)), read(new), exchange)

    return scores
