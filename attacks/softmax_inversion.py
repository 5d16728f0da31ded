"""Rows and labels of a FedAvg round of softmax regression, from the one gradient that its update is.

The mean cross-entropy of a batch of n rows has ∇W = Dᵀ X and ∇b = Dᵀ 1, D = (P − Y)/n. One row follows in
closed form, a batch of distinct labels from equations in its logits; see
:mod:`vflens.numerics.gradients.softmax_batch`. It is exact up to rounding.
"""

from typing import ClassVar

import numpy as np

from vflens.errors import KnowledgeError
from vflens.numerics.gradients.softmax_batch import softmax_batch, softmax_row
from vflens.plugins.attack import Attack
from vflens.plugins.declared import Audited
from vflens.plugins.views.horizontal import ServerView
from vflens.types import Array, Estimate, Knowledge, Phase, RowStatus, Setting, statuses
from vflens.words import counted

_MISFIT = 1e-4  # of rows whose gradient is the observed one, up to its rounding


class SoftmaxInversion(Attack):
    """A batch of one row, or of fewer rows than classes with distinct labels: those of least ∇b."""

    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.GRADIENTS, Knowledge.PARAMETERS})
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN})
    estimated_rows: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN})
    rowwise: ClassVar[bool] = False
    settings: ClassVar[frozenset[Setting]] = frozenset({Setting.HORIZONTAL})
    audited: ClassVar[Audited | None] = None

    @property
    def unordered(self) -> bool:
        return True

    def reconstruct(self, view: ServerView, *, rng: np.random.Generator) -> Estimate:
        """Columns (n, d) of the rows of ``view.round``; NOT_CONVERGED where their gradient is another. See
        :meth:`vflens.plugins.attack.Attack.reconstruct`.
        """
        gradient, n = view.gradient(view.round), len(view.rows)
        if set(gradient) != {"weight", "bias"}:
            raise KnowledgeError(f"the run trains {sorted(gradient)}: softmax regression has weight and bias")
        if n >= view.n_classes:
            raise KnowledgeError(
                f"a round of {counted(n, 'row')} and {counted(view.n_classes, 'class')}: fewer rows than "
                "classes have one solution"
            )
        pair = gradient["weight"], gradient["bias"]
        parameters = view.parameters(view.round)
        found = (
            softmax_row(*pair)
            if n == 1
            else softmax_batch(pair, (parameters["weight"], parameters["bias"]), _labels(pair[1], n))
        )
        status = RowStatus.OK if found.misfit < _MISFIT else RowStatus.NOT_CONVERGED
        return Estimate(view.target, view.rows, found.x, statuses(n, status))


def _labels(bias: Array, n: int) -> Array:
    """The ``n`` classes of least ∇b, ascending."""
    least: Array = np.sort(np.argsort(bias, kind="stable")[:n])
    return least
