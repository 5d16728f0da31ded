"""Linear minimum mean square error behind turned columns or weights: granted rows show the turn (ours)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from vflens.attacks.helpers.linear.turned import turned
from vflens.attacks.lmmse import LinearMMSE
from vflens.errors import KnowledgeError
from vflens.plugins.arrivals import latest
from vflens.plugins.declared import Audited
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Knowledge, Phase, Point
from vflens.words import counted


class TurnedLMMSE(LinearMMSE):
    """:class:`vflens.attacks.lmmse.LinearMMSE` with the weights that explain granted rows' last logits of
    training: the disclosed ones, or those of 1 − x, −x, signs, a permutation, an orthonormal matrix.
    """

    needs: ClassVar[frozenset[Knowledge]] = LinearMMSE.needs | {Knowledge.EMBEDDINGS, Knowledge.AUXILIARY}
    phases: ClassVar[frozenset[Phase]] = frozenset(Phase)
    audited: ClassVar[Audited | None] = None
    knows: ClassVar[frozenset[str]] = frozenset({"transform_inputs", "transform_parameters"})

    def believed(self, view: AdversaryView) -> tuple[Array, Array]:
        """See :meth:`vflens.plugins.attack.LinearAttack.believed`.

        Raises:
            KnowledgeError: also where fewer than four of the granted rows were trained on, or logits of
                several parties arrive as a sum.
        """
        weight, bias = view.unknown_parameters()
        granted, x = view.auxiliary()
        z, seen = latest(((rows, z) for _, rows, z in view.batches(Point.EMBEDDING, Phase.TRAIN)), granted)
        if seen.sum() < 4:
            raise KnowledgeError(
                f"{int(seen.sum())} of the {counted(len(granted), 'row')} that {view.target!r} granted were "
                f"trained on{view.sampling()}: lmmse_turned needs at least 4"
            )
        found = turned(weight, x[seen], np.asarray(z[seen], np.float64) - bias)
        return found.weight, bias + found.offset
