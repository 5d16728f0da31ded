"""Take the released table as it is: the best unbiased estimate under the optimal Gaussian noise (FAR Thm 2.4)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from vfl.attack import Attack
from vfl.types import Estimate, Knowledge, Phase, statuses
from vfl.view import AdversaryView


class ReleasedTable(Attack):
    """x̂ = x̄."""

    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.AUXILIARY})
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.DISCLOSE})

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Row by row the released cells."""
        _, values = view.released_table()
        return Estimate(view.target, view.rows, values, statuses(len(values)))
