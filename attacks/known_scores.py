"""Linear minimum mean square error without disclosed weights: known rows and their scores give them (ours).

The people whose rows are known must be predicted too: as they are, or as those who come back.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from vflens.attacks.helpers.linear.predicted import predicted
from vflens.attacks.lmmse import LinearMMSE
from vflens.errors import KnowledgeError
from vflens.numerics.linear_system import pseudo_inverse
from vflens.plugins.declared import Audited
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Knowledge
from vflens.words import counted


class KnownScores(LinearMMSE):
    """:class:`vflens.attacks.lmmse.LinearMMSE` with weights and bias by least squares from the scores of
    known rows.
    """

    needs: ClassVar[frozenset[Knowledge]] = LinearMMSE.needs - {Knowledge.PARAMETERS} | {Knowledge.AUXILIARY}
    audited: ClassVar[Audited | None] = None
    since: ClassVar[str] = "0.3"
    knows: ClassVar[frozenset[str]] = frozenset(
        {"withhold_parameters", "distorted_parameters", "transform_inputs", "transform_parameters"}
    )

    def believed(self, view: AdversaryView) -> tuple[Array, Array]:
        """See :meth:`vflens.plugins.attack.LinearAttack.believed`; of the weights what the equations see.

        Raises:
            KnowledgeError: too few known rows have scores without a 0 to determine them.
        """
        known = predicted(view)
        k, d = view.n_classes, known.x.shape[1]
        systems = view.model.linear_systems(known.scores, known.own, np.eye(k))
        whole = next(((rows, of) for rows, of in systems if not of.saturated), None)
        usable = 0 if whole is None else len(whole[0])
        if whole is None or usable <= d:
            raise KnowledgeError(
                f"{usable} of the {counted(known.granted, 'row')} granted to {view.party!r} got a prediction "
                f"without a score of 0: known_scores needs {d + 1} to fit {counted(d, 'column')}, grant rows "
                "of so many people who are predicted, or leave it out"
            )
        rows, system = whole
        x = np.column_stack([known.x[rows], np.ones(usable)])
        fitted = pseudo_inverse(system.A) @ (pseudo_inverse(x) @ system.b).T
        return fitted[:, :d], fitted[:, d]
