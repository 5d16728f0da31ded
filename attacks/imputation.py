"""Blind: what the adversary's own columns say of the target's, learnt from the rows that it knows (ours).

It reads nothing of the estimated rows but their own columns. What an attack finds beyond it is a leak.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from vflens.numerics.imputation import imputation
from vflens.plugins.attack import Attack
from vflens.plugins.declared import Audited
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Estimate, Knowledge, Phase, statuses


class Imputation(Attack):
    """Ridge regression of the target's columns on the adversary's own, over the granted rows, or their means:
    what errs less on rows left out; see :func:`vflens.numerics.imputation.imputation`.
    """

    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.OWN_FEATURES, Knowledge.AUXILIARY})
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.DISCLOSE})
    estimated_rows: ClassVar[frozenset[Phase]] = frozenset({Phase.PREDICT, Phase.TRAIN})
    exact: ClassVar[bool] = False
    audited: ClassVar[Audited | None] = None  # the audit's active party has no columns of its own
    blind: ClassVar[bool] = True

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Columns (N, d) in [0, 1]; see :meth:`vflens.plugins.attack.Attack.reconstruct`.

        Raises:
            KnowledgeError: no rows were granted.
        """
        known, x = view.auxiliary()
        imputed = imputation(view.own("features", known), x)(view.own("features"))
        return Estimate(view.target, view.rows, np.clip(imputed, 0, 1), statuses(len(view.rows)))
