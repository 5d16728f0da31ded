"""Take the released table unchanged: the best unbiased estimate under the optimal Gaussian noise (FAR Thm
2.4).
"""

from typing import ClassVar

import numpy as np

from vflens.plugins.attack import Attack
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Estimate, Knowledge, Phase, statuses


class ReleasedTable(Attack):
    """x̂ = x̄."""

    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.RELEASED_TABLE})
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.DISCLOSE})

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Row by row the released cells."""
        _, values = view.released_table()
        return Estimate(view.target, view.rows, values, statuses(len(values)))
