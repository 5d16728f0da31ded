"""A numeric label from training in the clear: the first gradient of a row is twice what it lacks (ours).

The gradient of (z − y)² in z is 2(z − y). In the first step z is 0, and the label is exact. In later steps of
the first epoch z is taken as the same for all rows of the batch: ŷ = ȳ + (mean(g) − g)/2 for the gradient g
of a row, with ȳ the mean of the labels of the first step.
"""

from typing import ClassVar

import numpy as np

from vflens.errors import KnowledgeError
from vflens.plugins.attack import Attack
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Estimate, Knowledge, LabelKind, Phase, Point, statuses


class FirstResiduals(Attack):
    """The label of each row from its earliest gradient, in [0, 1] of its bounds; without the gradients of the
    first step, their mean is taken as ½.
    """

    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.GRADIENTS})
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN})
    estimated_rows: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN})
    rowwise: ClassVar[bool] = False
    exact: ClassVar[bool] = False
    estimates = "labels"
    label_kind: ClassVar[LabelKind] = "number"

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Numbers (N, 1); see :meth:`vflens.plugins.attack.Attack.reconstruct`.

        Raises:
            KnowledgeError: no gradient of a row arrived.
        """
        found = _labels(view)
        if unseen := [row for row in view.rows.tolist() if row not in found]:
            raise KnowledgeError(f"no gradient of row {unseen[0]} arrived: record the first epoch")
        values = np.array([found[row] for row in view.rows.tolist()]).reshape(-1, 1)
        return Estimate(view.target, view.rows, values, statuses(len(view.rows)))


def _labels(view: AdversaryView) -> dict[int, float]:
    """Row → its label."""
    found: dict[int, float] = {}
    mean = 0.5
    for exchange, rows, gradients in view.batches(Point.GRADIENT, Phase.TRAIN):
        residual: Array = gradients[:, 0] / 2
        labels = mean + residual.mean() - residual
        if exchange.step == 0:
            labels = -residual
            mean = float(labels.mean())
        for row, label in zip(rows.tolist(), labels.tolist(), strict=True):
            found.setdefault(row, label)
    return found
