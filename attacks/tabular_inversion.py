"""Rows of a table from the gradient of a round: inside the box, one category a group, many descents pooled.

TabLeak (Vero et al., ICML 2023), with labels restored first, and ends that are far from the best left out.
"""

from typing import ClassVar

import numpy as np
from pydantic import Field
from torch import Tensor

from vflens.attacks.helpers.gradients.rounds import RoundAttack, known_network
from vflens.attacks.helpers.gradients.table_rows import TableRows, one_hot_groups
from vflens.attacks.helpers.gradients.tabular import Descents, TableBatch, tabular_inversion
from vflens.plugins.views.horizontal import ServerView
from vflens.types import Estimate, statuses


class TabularInversion(RoundAttack):
    """``dlg`` for tables: a category is the softmax of its one-hot columns, every other column a sigmoid."""

    exact: ClassVar[bool] = False

    starts: int = Field(30, ge=1, le=1_000, description="descents that are pooled; time grows with it")
    steps: int = Field(600, ge=1, le=1_000_000, description="steps of Adam of each descent")
    polishing_steps: int = Field(
        100, ge=0, le=1_000_000, description="steps of L-BFGS that end each descent, at most"
    )
    rate: float = Field(
        0.06, gt=0, allow_inf_nan=False, description="Adam's first step, in logits of a value"
    )

    def reconstruct(self, view: ServerView, *, rng: np.random.Generator) -> Estimate:
        """Columns (n, d); of a one-hot column the belief in its category. Extras: "spread" (n, d), the
        standard deviation over descents, the adversary's own doubt; "distance" (n,), that of the gradients.

        Raises:
            KnowledgeError: the clients keep a part of the model to themselves.
        """
        gradient, model = view.gradient(view.round), known_network(view, view.parameters(view.round))
        columns, labels = view.metadata(), self.labels(view, model, gradient, rng)

        def progress(done: int, distances: Tensor) -> None:
            view.progress("descent", done, self.steps)

        batch = TableBatch(TableRows(one_hot_groups(columns)), len(columns), labels, view.n_classes)
        descents = Descents(self.starts, self.steps, self.polishing_steps, self.rate)
        found = tabular_inversion(model, gradient, batch, descents, rng, progress=progress)
        extras = {"spread": found.spread, "distance": np.full(len(labels), found.distance)}
        return Estimate(view.target, view.rows, found.x, statuses(len(labels)), extras=extras)
