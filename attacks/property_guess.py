"""Blind: what the adversary's own columns say of the population, learnt from the rows that it knows (ours).

It reads nothing of the federation but granted rows. What an attack on properties finds beyond it is a leak.
"""

from typing import ClassVar

import numpy as np

from vflens.attacks.helpers.people.property import OWN, Features, PropertyAttack, means_of
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Knowledge


class PropertyGuess(PropertyAttack):
    """The features are the means of the adversary's own columns."""

    needs: ClassVar[frozenset[Knowledge]] = OWN
    blind: ClassVar[bool] = True

    def features(self, view: AdversaryView, known: Array, x: Array, rng: np.random.Generator) -> Features:
        return means_of(view.own("features"), view.own("features", known))
