"""Settings of attacks that look for the rows whose gradient comes nearest to an observed one."""

from collections.abc import Mapping
from typing import Literal

import numpy as np
from pydantic import BaseModel, Field
from torch import Tensor, nn

from vflens.attacks.helpers.gradients.batch_norms import Moments
from vflens.attacks.helpers.gradients.inverted import BatchShape, Guessed, cosine_inversion, deep_leakage
from vflens.attacks.helpers.gradients.matching import Matching
from vflens.plugins.views.horizontal import ServerView
from vflens.types import Array, Estimate, Progress, statuses

Optimizer = Literal["lbfgs", "adam"]


class Descent(BaseModel):
    """How an attack goes down from random rows."""

    optimizer: Optimizer = Field(
        "lbfgs",
        description="L-BFGS on the squared distance of gradients (Zhu et al., 2019), exact on smooth models; "
        "or signed Adam on their cosine with total variation (Geiping et al., 2020), for ReLU and maxima",
    )
    starts: int = Field(4, ge=1, le=1_000, description="starting points of each batch; time grows with it")
    steps: int = Field(600, ge=1, le=1_000_000, description="steps from each, of L-BFGS at most")
    rate: float = Field(
        0.1, gt=0, allow_inf_nan=False, description="adam: its first step, in units of the box"
    )
    smoothness: float = Field(
        0.01, ge=0, allow_inf_nan=False, description="adam: weight of an image's total variation per pixel"
    )

    def inverted(
        self,
        model: nn.Module,
        gradients: Mapping[str, Array],
        shape: BatchShape,
        rng: np.random.Generator,
        *,
        labels: Array | None,
        moments: Moments = "batch",
        progress: Progress,
    ) -> Guessed:
        """The batches of ``shape`` whose gradients under ``model`` come nearest to ``gradients`` (m, …), by
        name; with ``labels`` (m, n) or, by L-BFGS, without. ``moments``: see :class:`Matching`.
        """

        def step(done: int, distances: Tensor) -> None:
            progress("descent", done, self.steps)

        if self.optimizer == "lbfgs":
            matching = Matching(model, gradients, moments=moments)
            return deep_leakage(
                matching, shape, rng, labels=labels, starts=self.starts, steps=self.steps, progress=step
            )
        assert labels is not None
        return cosine_inversion(
            Matching(model, gradients, "cosine", moments),
            shape,
            labels,
            rng,
            starts=self.starts,
            steps=self.steps,
            rate=self.rate,
            smoothness=self.smoothness,
            progress=step,
        )

    def of_rows(
        self,
        view: ServerView,
        model: nn.Module,
        gradients: Mapping[str, Array],
        labels: Array,
        rng: np.random.Generator,
        *,
        first: Array | None = None,
    ) -> Estimate:
        """The rows of ``view`` from granted ``gradients`` (N, …) of each one's own loss, with ``labels``
        (N,); a batch norm had its running moments. Extra and ``first`` (N, starts, 1, d) as in
        :meth:`of_round`.
        """
        shape = BatchShape(1, view.metadata(), view.n_classes, first)
        found = self.inverted(
            *(model, gradients, shape, rng), labels=labels[:, None], moments="running", progress=view.progress
        )
        extras = {"distance": found.distance}
        return Estimate(view.target, view.rows, in_box(found.x[:, 0]), statuses(len(labels)), extras=extras)

    def of_round(
        self,
        view: ServerView,
        model: nn.Module,
        gradient: Mapping[str, Array],
        labels: Array | None,
        rng: np.random.Generator,
        *,
        first: Array | None = None,
    ) -> Estimate:
        """The rows of the round of ``view`` from its ``gradient``, with ``labels`` (n,) or without; extra
        "distance" (n,): of the gradients, in the unit of what was minimised. ``first`` (1, starts, n, d) is
        where descents begin.
        """
        n, observed = len(view.rows), {name: g[None] for name, g in gradient.items()}
        shape = BatchShape(n, view.metadata(), view.n_classes, first)
        given = None if labels is None else labels[None]
        found = self.inverted(model, observed, shape, rng, labels=given, progress=view.progress)
        distance = np.repeat(found.distance, n)
        return Estimate(
            view.target, view.rows, in_box(found.x[0]), statuses(n), extras={"distance": distance}
        )


def in_box(x: Array) -> Array:
    """The nearest rows in [0, 1], where the columns are: L-BFGS knows no box."""
    found: Array = np.clip(x, 0, 1)
    return found
