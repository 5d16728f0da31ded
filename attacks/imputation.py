"""Blind: what the adversary's own columns say of the target's, learnt from the rows that it knows (ours).

It reads nothing of the estimated rows but their own columns. What an attack finds beyond it is a leak. An
active party that knows rows makes this guess beside its attacks on columns, without being asked.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from vflens.attacks.helpers.linear.alphabets import scaled_alphabet
from vflens.numerics.entropy import nearest_letters
from vflens.numerics.imputation import imputation
from vflens.plugins.attack import Attack
from vflens.plugins.declared import Audited
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Estimate, Knowledge, Phase, statuses


class Imputation(Attack):
    """Ridge regression of the target's columns on the adversary's own, over the granted rows, or their means:
    what errs less on rows left out; see :func:`vflens.numerics.imputation.imputation`. A column of finitely
    many values is moved to the nearest of them where that errs less on these rows.
    """

    needs: ClassVar[frozenset[Knowledge]] = frozenset(
        {Knowledge.OWN_FEATURES, Knowledge.AUXILIARY, Knowledge.METADATA}
    )
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.DISCLOSE})
    estimated_rows: ClassVar[frozenset[Phase]] = frozenset({Phase.PREDICT, Phase.TRAIN})
    exact: ClassVar[bool] = False
    audited: ClassVar[Audited | None] = None  # it stands among the audit's blind guesses
    blind: ClassVar[bool] = True

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Columns (N, d) in [0, 1]; see :meth:`vflens.plugins.attack.Attack.reconstruct`.

        Raises:
            KnowledgeError: no rows were granted.
        """
        known, x = view.auxiliary()
        fit = imputation(view.own("features", known), x)
        values, tried = (np.clip(found, 0, 1) for found in (fit(view.own("features")), x - fit.left_out))
        for j, column in enumerate(view.metadata()):
            if (letters := np.array(scaled_alphabet(column) or ())).size:
                moved = nearest_letters(letters, tried[:, j])
                if _squares(moved, x[:, j]) < _squares(tried[:, j], x[:, j]):
                    values[:, j] = nearest_letters(letters, values[:, j])
        return Estimate(view.target, view.rows, values, statuses(len(view.rows)))


def _squares(guess: Array, x: Array) -> float:
    return float(((guess - x) ** 2).sum())
