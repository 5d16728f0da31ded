"""Training in the clear: the columns themselves, once the adversary knows a few training rows (ours).

clear_features finds all training rows up to one affine map. Known rows give that map.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from vflens.attacks.clear_features import ClearFeatures
from vflens.errors import KnowledgeError
from vflens.numerics.estimators.affine import affine_map
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Estimate, Knowledge, Phase
from vflens.words import counted


class ClearColumns(ClearFeatures):
    """The columns in their scaled units: the factors under the affine map that fits the granted rows; see
    :func:`vflens.numerics.estimators.affine.affine_map`.
    """

    needs: ClassVar[frozenset[Knowledge]] = ClearFeatures.needs | {Knowledge.AUXILIARY}
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN, Phase.DISCLOSE})
    up_to_affine: ClassVar[bool] = False

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Columns (N, d) in [0, 1].

        Raises:
            KnowledgeError: as :class:`vflens.attacks.clear_features.ClearFeatures`, or fewer than two of the
                granted rows were in a step.
        """
        granted, x = view.auxiliary()
        found = self.found(view)
        trained = np.isin(granted, found.rows)
        if trained.sum() < 2:
            raise KnowledgeError(
                f"{trained.sum()} of the {counted(len(granted), 'row')} that {view.target!r} granted were "
                f"trained on{view.sampling()}: clear_columns needs at least 2"
            )
        known = found.factors.x[np.searchsorted(found.rows, granted[trained])]
        weight, offset = affine_map(known, x[trained])
        values: Array = np.clip(found.factors.x @ weight + offset, 0, 1)
        return found.estimate(view, values)
