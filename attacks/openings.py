"""Protected training, attacked: columns from what is opened with a mask missing, known or used twice (ours).

With sound masks nothing can be read of it, and the answer is a blind guess.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import ClassVar

import numpy as np

from vflens.attacks._openings import Changes, placed, ridge, sigmoid, signed
from vflens.errors import KnowledgeError
from vflens.numerics.shares.scale import FEATURE_BITS
from vflens.plugins.attack import Attack
from vflens.plugins.views.vertical import AdversaryView
from vflens.randomness import stream
from vflens.types import Array, Estimate, Knowledge, Phase, statuses

_ROUNDS = 6  # of residuals from columns, and columns from residuals
_ONE = 2.0**FEATURE_BITS


class Openings(Attack):
    """Features whose mask is zero, public, dealt by the party or that of other rows; or from bare gradients.

    Where all masks are sound the answer is ½.
    """

    needs: ClassVar[frozenset[Knowledge]] = frozenset(
        {Knowledge.OPENINGS, Knowledge.OWN_FEATURES, Knowledge.OWN_LABELS, Knowledge.METADATA}
    )
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN, Phase.DISCLOSE})
    estimated_rows: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN})
    rowwise: ClassVar[bool] = False
    exact: ClassVar[bool] = False
    audited = None

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Columns (N, d) in [0, 1].

        Raises:
            KnowledgeError: nothing was opened at the party.
        """
        rows, opened = view.opened_features()
        places, part = placed(rows, view), view.shared_columns()[view.target]
        values = self._features(view, opened, part)
        if values is None:
            values = self._from_changes(view, rows, part)
        if values is None:
            values = np.full((len(rows), part.stop - part.start), 0.5)
        return Estimate(view.target, view.rows, np.clip(values[places], 0, 1), statuses(len(view.rows)))

    def _features(self, view: AdversaryView, opened: Array, part: slice) -> Array | None:
        """The features (n, d) behind a mask that is known, or the same in all rows."""
        for mask in _known_masks(view, opened):
            found = signed(opened[:, part] + mask[:, part])
            if np.abs(found).max() <= _ONE:
                return found / _ONE
        differences = signed(opened[:, part] - opened[:1, part])
        if np.abs(differences).max() <= _ONE:
            found = differences - differences.min(axis=0)  # every column is scaled to begin at 0
            return np.asarray(found / _ONE)
        return None

    def _from_changes(self, view: AdversaryView, rows: Array, part: slice) -> Array | None:
        """The features that fit the gradients, nearest to ½."""
        changes = Changes.found(view)
        if changes is None:
            return None
        try:
            x, y = _own(view, rows, changes.theta.shape[1]), _one_hot(view, rows, changes.theta.shape[2])
        except KnowledgeError:  # the coordinator has neither columns nor labels
            return None
        unknown = np.isnan(x[0])
        place = np.zeros(rows.max() + 1, np.intp)
        place[rows] = np.arange(len(rows))
        batches = [place[step.rows] for step in changes.steps]
        right = changes.gradients()[:, unknown].transpose(0, 2, 1).reshape(-1, unknown.sum())
        x[:, unknown] = 0.5
        prior = x[:, unknown].copy()
        for _ in range(_ROUNDS):
            equations = np.zeros((len(batches), y.shape[1], len(rows)))
            for t, batch in enumerate(batches):
                equations[t][:, batch] = (sigmoid(x[batch] @ changes.theta[t]) - y[batch]).T
            x[:, unknown] = np.clip(ridge(equations.reshape(-1, len(rows)), right, prior), 0, 1)
        found: Array = x[:, part]
        return found


def _known_masks(view: AdversaryView, opened: Array) -> Iterator[Array]:
    """Masks uint64 (n, d) of the features that the party may know."""
    yield np.zeros_like(opened)
    public = stream(view.opened_in().encode(), "features").integers(0, 2**64, opened.shape, np.uint64)
    yield public
    yield public + public
    with suppress(KnowledgeError):
        yield view.own("masks", np.arange(len(opened)))


def _own(view: AdversaryView, rows: Array, width: int) -> Array:
    """All columns (n, d) as far as the party has them, the others NaN; the bias is known."""
    x = np.ones((len(rows), width))
    for party, part in view.shared_columns().items():
        x[:, part] = view.own("features", rows) if party == view.party else np.nan
    return x


def _one_hot(view: AdversaryView, rows: Array, logits: int) -> Array:
    labels = view.own("labels", rows).astype(np.intp)
    y = np.eye(view.n_classes)[labels]
    return y[:, 1:] if logits == 1 else y
