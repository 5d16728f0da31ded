"""A model is surer of people whom it was trained on: membership from the answers alone.

Salem et al. (2019, NDSS, "ML-Leaks"), §V, adversary 3; with labels Yeom et al. (2018).
"""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from vflens.numerics.membership import loss_scores, sureness
from vflens.plugins.attack import Attack, Estimated
from vflens.plugins.declared import Audited, Declared
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Estimate, Knowledge, Phase, statuses

_LEAST = float(np.log(np.finfo(np.float64).tiny))  # a score that was rounded to 0 has no logarithm


class Confidence(Attack):
    """The score of a candidate is how sure the released scores are; any threshold is the scorer's."""

    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.SCORES})
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.PREDICT, Phase.DISCLOSE})
    estimates: ClassVar[Estimated] = "membership"
    audited: ClassVar[Audited | None] = None

    by: Literal["largest", "entropy", "loss"] = Field(
        "largest",
        description="the largest probability, minus the entropy, or minus the loss, for who knows the label",
    )

    def declared(self) -> Declared:
        """With the labels, where it knows the loss."""
        found = super().declared()
        labels = {Knowledge.KNOWN_LABELS} if self.by == "loss" else set()
        return Declared(found.needs | labels, found.phases, found.rows)

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """The scores (n, 1) of the candidates."""
        log_c = np.maximum(view.scores(), _LEAST)
        if self.by == "loss":
            found = loss_scores(log_c, _labels(view))
        else:
            found = sureness(log_c, entropy=self.by == "entropy")
        return Estimate(view.target, view.rows, found[:, None], statuses(len(log_c)))


def _labels(view: AdversaryView) -> Array:
    """The labels (n,) of the rows of ``view``."""
    rows, labels = view.known_labels()
    order = np.argsort(rows, kind="stable")
    found: Array = labels[order[np.searchsorted(rows, view.rows, sorter=order)]]
    return found
