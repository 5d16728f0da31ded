"""AM: without any score, the adversary's own classifier replaces the federation's (VAR §IV).

It needs disclosed parameters only, so it works on training rows and on rows without scores.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from vflens.attacks.helpers.linear.agnostic import OUTSIDE, STATED, Outside, solve_with_classifier
from vflens.numerics.theory.agnostic import fit_classifier
from vflens.plugins.attack import JointAttack
from vflens.plugins.declared import Audited, Stated
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Estimate, Knowledge, Phase


class Agnostic(JointAttack):
    """Softmax regression of the labels on the own columns of the training rows; its ĉ replaces c."""

    needs: ClassVar[frozenset[Knowledge]] = frozenset(
        {Knowledge.PARAMETERS, Knowledge.OWN_FEATURES, Knowledge.OWN_LABELS}
    )
    helped_by: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.AUXILIARY})
    estimated_rows: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN, Phase.PREDICT})
    audited: ClassVar[Audited | None] = None  # the audit's adversary has the scores
    stated: ClassVar[Stated | None] = STATED

    l2: float = Field(1e-4, ge=0, allow_inf_nan=False, description="penalty on the classifier's weights")
    outside: Outside = Field("clip", description=OUTSIDE)

    def joint(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """See :meth:`vflens.plugins.attack.JointAttack.joint` and
        :func:`vflens.attacks.helpers.linear.agnostic.solve_with_classifier`.
        """
        rows = view.training_rows
        theta = fit_classifier(view.own("features", rows), view.own("labels", rows), view.n_classes, self.l2)
        return solve_with_classifier(view, theta, self.outside)
