"""RAM: the adversary's own classifier, pulled towards the few scores that it received (VAR §IV).

For all other rows, those of training included, its scores stand in for the federation's.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from vflens.attacks.helpers.linear.agnostic import OUTSIDE, STATED, Outside, solve_with_classifier
from vflens.numerics.theory.agnostic import ReceivedScores, fit_classifier
from vflens.plugins.attack import JointAttack
from vflens.plugins.declared import Audited, Stated
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Estimate, Knowledge, Phase, Point


class RefinedAgnostic(JointAttack):
    """``agnostic`` with (α/n_p) Σ_j S(f(y_j), c_j) in its loss, S(c', c) = Σ_i ln²(c'_i/c_i)."""

    needs: ClassVar[frozenset[Knowledge]] = frozenset(
        {Knowledge.SCORES, Knowledge.PARAMETERS, Knowledge.OWN_FEATURES, Knowledge.OWN_LABELS}
    )
    helped_by: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.AUXILIARY})
    estimated_rows: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN, Phase.PREDICT})
    audited: ClassVar[Audited | None] = None  # the audit's adversary has all scores
    stated: ClassVar[Stated | None] = STATED

    received: int = Field(100, ge=1, description="n_p: how many scores it uses, the first that arrived")
    alpha: float = Field(1.0, ge=0, allow_inf_nan=False, description="α: what they weigh")
    l2: float = Field(1e-4, ge=0, allow_inf_nan=False, description="penalty on the classifier's weights")
    outside: Outside = Field("clip", description=OUTSIDE)

    def joint(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """See :meth:`vflens.plugins.attack.JointAttack.joint` and
        :func:`vflens.attacks.helpers.linear.agnostic.solve_with_classifier`.
        """
        rows, seen, log_c = view.training_rows, *self._first(view)
        refining = ReceivedScores(view.own("features", seen), log_c, self.alpha)
        theta = fit_classifier(
            view.own("features", rows), view.own("labels", rows), view.n_classes, self.l2, refining
        )
        return solve_with_classifier(view, theta, self.outside)

    def _first(self, view: AdversaryView) -> tuple[Array, Array]:
        """The first n_p rows (m,) whose scores arrived, without those that saturated, and their scores (m,
        k).
        """
        rows, scores = [np.zeros(0, np.int32)], [np.zeros((0, view.n_classes))]
        for released in view.received(Point.SCORES):
            if sum(map(len, rows)) >= self.received:
                break
            rows.append(released.rows)
            scores.append(released.tensor("scores"))
        seen, log_c = np.concatenate(rows)[: self.received], np.concatenate(scores)[: self.received]
        usable = np.isfinite(log_c).all(axis=1)
        return seen[usable], log_c[usable]
