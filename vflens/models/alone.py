"""A model whose passive parties send nothing: what the active party learns on its own columns."""

from collections.abc import Callable
from itertools import islice

import numpy as np

from vflens.models.family import ModelFamily
from vflens.models.part import Site
from vflens.models.softmax_regression import as_targets, batches
from vflens.models.whole import WholeModel
from vflens.types import Array, Exchange, Phase


def train_alone(
    model: ModelFamily,
    site: Site,
    read: Callable[[Array], Array],
    labels: Array,
    rows: Array,
    *,
    rng: np.random.Generator,
    steps: int | None = None,
) -> Callable[[Array], Array]:
    """Train on ``rows`` as the federation trains; return what gives the scores (m, k) of any m rows.

    ``read`` returns the inputs (m, d) of the rows asked. ``site`` describes the active party, with the width
    that it receives in the federation. Training ends after so many ``steps``, if they come before its epochs.
    """
    whole, size = WholeModel(model, site), site.training.batch_size
    every = ((epoch, b) for epoch in range(site.training.epochs) for b in batches(rows, size, rng))
    for step, (epoch, batch) in enumerate(islice(every, steps)):
        exchange = Exchange("alone", Phase.TRAIN, epoch, step)
        whole.learn(read(batch), as_targets(labels[batch], site.classes), exchange)

    def scores(new: Array) -> Array:
        """Scores float64 (m, k) of the rows ``new`` int (m,)."""
        return whole.log_scores(read(new), Exchange("alone", Phase.PREDICT, 1, 0))

    return scores
