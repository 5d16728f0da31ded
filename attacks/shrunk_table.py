"""Shrink the released table towards its mean: the best linear estimate with known moments (ours)."""

from typing import ClassVar

import numpy as np

from vflens.plugins.attack import Attack
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Estimate, Knowledge, Phase, statuses


class ShrunkTable(Attack):
    """x̂ = μ + K S⁺(x̄ − m̄), with μ and K disclosed, S and m̄ the covariance and mean of the released table.

    S estimates K + V, so that the noise V need not be known. It goes far below the bound of unbiased
    estimates.
    """

    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.RELEASED_TABLE, Knowledge.MOMENTS})
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.DISCLOSE})

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Row by row; without a covariance, as from a single auxiliary row, x̄ itself."""
        table, values = view.released_table()
        moments = view.moments()
        if moments.covariance is not None:
            own = view.columns()
            S = np.atleast_2d(np.cov(table, rowvar=False))
            gain = np.linalg.lstsq(S, moments.covariance[own, own], rcond=None)[0]
            values = moments.mean[own] + (values - table.mean(axis=0)) @ gain
        return Estimate(view.target, view.rows, values, statuses(len(values)))
