"""Linear minimum mean square error from changed scores: known rows show what was done to them (ours)."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from vflens.attacks.helpers.linear.predicted import Predicted, arrived, predicted
from vflens.attacks.helpers.linear.rescaled import FITS, Fit, Relation, Rows, of_scores, one_factor
from vflens.attacks.lmmse import LinearMMSE
from vflens.numerics.shrinkage import block_diagonal
from vflens.plugins.conditional import given_own, of_rows, squares
from vflens.plugins.declared import Audited
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Estimate, Moments

_PARTS = 5  # of the known rows: a fit is tried on each after the others taught it
_FEWEST = 10  # known rows that teach anything


class RescaledLMMSE(LinearMMSE):
    """:class:`vflens.attacks.lmmse.LinearMMSE` after one of
    :data:`vflens.attacks.helpers.linear.rescaled.FITS`, or with the scores as they are, whichever errs least
    on known rows that were left out. Without known rows that were predicted it undoes one factor of all
    logits.
    """

    rowwise: ClassVar[bool] = False
    audited: ClassVar[Audited | None] = None
    since: ClassVar[str] = "0.3"
    knows: ClassVar[frozenset[str]] = frozenset(
        {
            *("scheme_1", "scheme_2", "scheme_3", "round_scores", "label_only"),
            *("gaussian_scores", "dp_gaussian", "dp_laplace"),
        }
    )

    def joint(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """See :meth:`vflens.plugins.attack.JointAttack.joint`. Rows of a kind that no known row is of keep
        the answer of ``lmmse``.
        """
        scores, seen = arrived(view, view.rows)
        if not len(seen) or not seen.all():  # a colluding coordinator has the logits themselves
            return super().joint(view, rng=rng)
        weight, bias = self.believed(view)
        no_scores, each = np.zeros((1, len(bias))), np.eye(len(bias))
        differ = view.model.linear_systems(no_scores, no_scores, each)[0][1].A
        known = [predicted(view)] if view.known_rows() else []
        own = np.vstack([*(rows.own for rows in known), view.own_logits()]) + bias
        rows = of_scores(np.vstack([*(rows.scores for rows in known), scores]), own, differ)
        taught, asked = (rows.of(of) for of in np.split(np.arange(len(own)), [len(own) - len(scores)]))
        A, enough = differ @ weight, len(taught.own) >= _FEWEST
        fit, moments = (
            self._best(view, known[0], taught, A, rng=rng)
            if enough
            else (None, self.moments_of(view, rng=rng))
        )
        plain = self.solved(self.systems(view), weight.shape[1], rng=rng, moments=moments)
        plain = replace(plain, target=view.target, rows=view.rows)
        assert moments is not None
        assert moments.covariance is not None  # lmmse refuses without
        relation = fit(taught, known[0].x @ A.T, asked) if fit else None
        if not enough:
            whole, spread = np.flatnonzero(np.isfinite(scores).all(axis=1)), A @ moments.covariance @ A.T
            relation = one_factor(asked, asked.own + moments.mean @ A.T, spread, whole)
        if relation is None:
            return plain
        return replace(plain, values=self._found(relation, A, moments, plain.values, rng), extras={})

    def _best(
        self, view: AdversaryView, known: Predicted, rows: Rows, A: Array, *, rng: np.random.Generator
    ) -> tuple[Fit | None, Moments | None]:
        """What errs least on known rows that did not teach it, None for the scores as they are, and the
        moments that it errs least with.
        """
        given, plain = given_own(view), view.moments()
        assert given is not None  # rows are known
        weight, bias = self.believed(view)
        systems = view.model.linear_systems(known.scores, known.own + bias, weight)
        t, part = known.x @ A.T, rng.permutation(len(known.x)) % _PARTS
        left_out = [np.flatnonzero(part == i) for i in range(_PARTS)]
        taught = [np.setdiff1d(np.arange(len(t)), left) for left in left_out]
        relations = [
            [fit(rows.of(of), t[of], rows.of(left)) for of, left in zip(taught, left_out, strict=True)]
            for fit in FITS
        ]
        tried: list[tuple[float, Fit | None, Moments]] = []
        for moments, asked in ((plain, plain), (of_rows(given.known, known.places), given.asked)):
            as_is = self.solved(systems, weight.shape[1], rng=rng, moments=moments).values
            tried.append((squares(as_is, known.x), None, asked))
            for fit, of_parts in zip(FITS, relations, strict=True):
                found = as_is.copy()
                for relation, left in zip(of_parts, left_out, strict=True):
                    found[left] = self._found(relation, A, of_rows(moments, left), as_is[left], rng)
                tried.append((squares(found, known.x), fit, asked))
        return min(tried, key=lambda one: one[0])[1:]

    def _found(
        self, relation: Relation, A: Array, moments: Moments | None, plain: Array, rng: np.random.Generator
    ) -> Array:
        """The columns (n, d), with noise for columns too; ``plain`` (n, d) where no side is known."""
        (q, d), values = A.shape, plain.copy()
        covered = np.flatnonzero(~np.isnan(relation.sides).any(axis=1))
        own = of_rows(moments, covered)
        assert own is not None
        assert own.covariance is not None  # lmmse refuses without
        mean = np.concatenate([own.mean, np.zeros((*own.mean.shape[:-1], q))], axis=-1)
        both = Moments(mean, block_diagonal([own.covariance, relation.noise]))
        widened = np.hstack([relation.scale * A, np.eye(q)])
        values[covered] = self.solve(widened, relation.sides[covered], rng=rng, moments=both).values[:, :d]
        return values
