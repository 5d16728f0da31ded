"""Linear minimum mean square error from scores that PRIVEE multiplied, its factors undone (ours)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from vflens.attacks.lmmse import LinearMMSE
from vflens.numerics.theory.privee import Variant, factors, undone
from vflens.plugins.declared import Audited
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array

_LEAST = 1e-10  # a score below this is lost in the rounding of what was released


class PriveeLMMSE(LinearMMSE):
    """:class:`vflens.attacks.lmmse.LinearMMSE` with the scores that
    :func:`vflens.numerics.theory.privee.undone` finds.

    A row that is not undone counts as one-hot: it has no equations. Where most rows
    sum to 1 nothing was multiplied, and scores stay.
    """

    rowwise: ClassVar[bool] = False
    audited: ClassVar[Audited | None] = None
    knows: ClassVar[frozenset[str]] = frozenset({"privee"})

    variant: Variant = Field("privee", description="how the factors were drawn: that of the defence")
    epsilon: float = Field(0.1, ge=1e-3, le=1e3, description="that of the defence")
    tries: int = Field(200, ge=1, le=10_000, description="guesses of the factors where their search begins")

    def scores(self, view: AdversaryView) -> Array:
        """Logarithms (N, k); see :meth:`vflens.plugins.attack.LinearAttack.scores`."""
        released = view.scores()
        shares = np.exp(released)
        if not len(shares) or np.median(np.abs(shares.sum(axis=1) - 1)) < 1e-9:
            return released
        known = factors(self.variant, view.n_classes, self.epsilon)
        s, explained = undone(known.read(shares), known, self.tries)
        top = s.argmax(axis=1)[:, None] == np.arange(view.n_classes)
        with np.errstate(divide="ignore"):  # log 0 = −∞ is the answer
            found: Array = np.log(np.where(explained[:, None], np.where(s > _LEAST, s, 0.0), top))
        return found
