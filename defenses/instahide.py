"""InstaHide: every row of a batch becomes a mixture of several rows, with random signs (Huang et al., 2020).

The paper has one owner of features and labels, as a client is. In a vertical run they lie at different
parties, so partners and weights are drawn under the key that the data parties share, and the signs under the
party's own secret (docs/adr/0024-mixtures-of-several-parties.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from pydantic import Field, model_validator

from vflens.plugins.defense import Context, Defense
from vflens.types import Array, Owner, Phase
from vflens.words import counted

_LEAST = 1.2  # of largest·mixed: nearer to 1 hardly any drawn weights fit


class InstaHide(Defense):
    """x̃ = σ ∘ (Σ_j λ_j x_π(j) − m), ỹ = Σ_j λ_j y_π(j), of rows of one batch, the row itself among them.

    The λ are uniform on Σ λ = 1, λ ≤ ``largest``; σ ∈ {±1}^d is fresh for every row of every batch; m is the
    mean of all the party's numbers, or 0. A row of a prediction is not mixed, for its scores are those of one
    row; it has signs of its own.
    """

    unclaimed: ClassVar[str] = "mixtures and signs have been undone"
    together: ClassVar[bool] = True
    mixes_rows: ClassVar[bool] = True

    mixed: int = Field(2, ge=1, le=4, description="rows in a mixture; 1: signs alone")
    largest: float = Field(0.65, gt=0, le=1, description="largest weight of a row in a mixture of several")
    centred: bool = Field(
        True, description="false: m = 0; of inputs in [0, 1] the signs then hide nothing to who sees x̃"
    )
    mask_predictions: bool = Field(True, description="false: rows of predictions have no signs")

    @model_validator(mode="after")
    def _weights_fit(self) -> InstaHide:
        least = _LEAST / self.mixed
        if self.mixed > 1 and self.largest < least:
            raise ValueError(
                f"largest = {self.largest:g} of {counted(self.mixed, 'weight')} with sum 1 leaves hardly "
                f"any: choose at least {least:g}"
            )
        return self

    def fit(self, owner: Owner, rng: np.random.Generator) -> Mapping[str, Array]:
        """M."""
        columns = owner.columns
        if columns is None or 0 in columns.shape or not self.centred:
            return {"mean": np.array(0.0)}
        return {"mean": columns.mean(np.arange(len(columns))).mean()}

    def on_batch(self, x: Array, ctx: Context) -> Array:
        """Mixtures with signs (n, d)."""
        training = ctx.exchange.phase is Phase.TRAIN
        moved = (self._mixtures(x, ctx) if training else x) - ctx.state["mean"]
        if not training and not self.mask_predictions:
            return moved
        signs = ctx.draw(lambda rng, n: rng.choice([-1.0, 1.0], (n, x.shape[1])))
        masked: Array = signs * moved
        return masked

    def on_batch_labels(self, y: Array, ctx: Context) -> Array:
        """The same mixtures of labels (n, k)."""
        return self._mixtures(y, ctx)

    def _mixtures(self, rows: Array, ctx: Context) -> Array:
        rng, n = ctx.common_stream("instahide"), len(rows)
        weights = _weights(rng, n, min(self.mixed, n), self.largest)
        mixtures: Array = np.zeros_like(rows)
        for place, weight in zip(_partners(rng, n, self.mixed), weights.T, strict=True):
            mixtures += weight[:, None] * rows[place]
        return mixtures


def _partners(rng: np.random.Generator, n: int, mixed: int) -> list[Array]:
    """The rows in each of n mixtures, the row itself first: ``mixed`` different ones, or all n."""
    around, steps = rng.permutation(n), [0, *(1 + rng.permutation(max(n - 1, 0))[: mixed - 1])]
    return [np.roll(around, step)[np.argsort(around)] for step in steps][:n]


def _weights(rng: np.random.Generator, n: int, mixed: int, largest: float) -> Array:
    """Weights (n, mixed) of sum 1, uniform among those of at most ``largest``; for one row 1."""
    weights = rng.dirichlet(np.ones(mixed), n)
    largest = max(largest, _LEAST / max(mixed, 1))  # a batch may have fewer rows than a mixture
    while (large := weights.max(axis=1, initial=0.0) > largest).any():
        weights[large] = rng.dirichlet(np.ones(mixed), large.sum())
    return weights
