"""The share of a property among rows from the norms of their embeddings (ProVFL).

ProVFL: Property Inference Attacks against Vertical Federated Learning; its module of distribution comparison.
"""

from typing import ClassVar

import numpy as np

from vflens.attacks.helpers.people.phases import phase_of
from vflens.attacks.helpers.people.property import OWN, Features, PropertyAttack, means_of
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Knowledge, Phase

_ORDERS, _PARTS = (1, 2, np.inf), 10


class PropertyEmbeddings(PropertyAttack):
    """The features are the distribution of the L1, L2 and L∞ norms of the embeddings, at the deciles of the
    known rows, and the means of the embeddings and of the adversary's own columns.
    """

    needs: ClassVar[frozenset[Knowledge]] = OWN | {Knowledge.EMBEDDINGS}
    phases: ClassVar[frozenset[Phase]] = frozenset(Phase)

    def features(self, view: AdversaryView, known: Array, x: Array, rng: np.random.Generator) -> Features:
        h, of_known = view.embeddings(phase=phase_of(view)), view.embeddings(known, Phase.TRAIN)
        attacked, seen = (
            np.concatenate([below(norms(part), norms(of_known)), part, own], axis=1)
            for part, own in ((h, view.own("features")), (of_known, view.own("features", known)))
        )
        return means_of(attacked, seen)


def norms(h: Array) -> Array:
    """The L1, L2 and L∞ norms (n, 3) of embeddings (n, w)."""
    return np.stack([np.linalg.norm(h, order, axis=1) for order in _ORDERS], axis=1)


def below(values: Array, known: Array) -> Array:
    """Whether each of ``values`` (n, c) is at most each decile of its column of ``known`` (m, c), (n, 9c)."""
    deciles = np.quantile(known, np.arange(1, _PARTS) / _PARTS, axis=0)
    found: Array = (values[:, None] <= deciles).reshape(len(values), -1).astype(float)
    return found
