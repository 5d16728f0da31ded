"""Protected training, attacked: columns from what is opened with a mask missing, known or used twice (ours).

With sound masks nothing can be read of it, and the answer is a blind guess.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from vflens.attacks._opened_columns import OpenedColumns
from vflens.attacks._openings import placed
from vflens.plugins.attack import Attack
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Estimate, Knowledge, LabelKind, Phase, statuses


class Openings(Attack):
    """Features whose mask is zero, public, dealt by the party or that of other rows; from logits, residuals
    or parameters whose mask is missing or that of all steps; or from gradients. Granted rows help.

    Where all masks are sound the answer is ½.
    """

    needs: ClassVar[frozenset[Knowledge]] = frozenset(
        {Knowledge.OPENINGS, Knowledge.OWN_FEATURES, Knowledge.OWN_LABELS, Knowledge.METADATA}
    )
    helped_by: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.AUXILIARY})
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN, Phase.DISCLOSE})
    estimated_rows: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN})
    rowwise: ClassVar[bool] = False
    exact: ClassVar[bool] = False
    audited = None

    def check_label(self, kind: LabelKind) -> None:
        """It reads classes and numbers alike."""

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Columns (N, d) in [0, 1].

        Raises:
            KnowledgeError: nothing was opened at the party.
        """
        found = OpenedColumns(view)
        attempts = (found.of_known_masks, found.of_shared_masks, found.of_logits, found.of_changes)
        values = next((x for attempt in attempts if (x := attempt()) is not None), found.nothing)
        places = placed(found.rows, view.rows, view.party)
        return Estimate(view.target, view.rows, np.clip(values[places], 0, 1), statuses(len(view.rows)))
