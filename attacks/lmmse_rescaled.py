"""Linear minimum mean square error from changed scores: known rows show what was done to them (ours)."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np

from vflens.attacks._predicted import Predicted, arrived, predicted
from vflens.attacks._rescaled import FITS, Fit, Rows, Undone, drawn_together
from vflens.attacks.lmmse import LinearMMSE
from vflens.numerics.shrinkage import block_diagonal
from vflens.plugins.conditional import given_own, of_rows
from vflens.plugins.declared import Audited
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Estimate, Moments

_PARTS = 5  # of the known rows: a fit is tried on each after the others taught it
_FEWEST = 10  # known rows that teach anything
_SAME = 1e-9  # leads of the highest score that differ by less are one


class RescaledLMMSE(LinearMMSE):
    """:class:`vflens.attacks.lmmse.LinearMMSE` after what :data:`vflens.attacks._rescaled.FITS` say of the
    scores, or without, whichever errs least on known rows that were left out. Without known rows that were
    predicted it undoes one factor of all logits.
    """

    rowwise: ClassVar[bool] = False
    audited: ClassVar[Audited | None] = None
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
        known, equations = self._known(view), _Equations.of(self, view)
        rows = _rows(np.vstack([known.scores, scores]), np.vstack([known.own, view.own_logits()]), equations)
        granted, asked = (rows.of(part) for part in np.split(np.arange(len(rows.kind)), [len(known.x)]))
        if len(known.x) >= _FEWEST:
            undone, moments = self._best(view, (known, granted), equations, rng)
        else:
            moments = self.moments_of(view, rng=rng) or view.moments()
            t = np.broadcast_to(equations.logits(np.atleast_2d(moments.mean)), asked.own.shape)
            whole = np.flatnonzero(np.isfinite(scores).all(axis=1))
            undone = drawn_together(asked.of(whole), t[whole])
        plain = self.solved(self.systems(view), known.x.shape[1], rng=rng, moments=moments)
        plain = replace(plain, target=view.target, rows=view.rows)
        if undone is None:
            return plain
        values = self._found(undone, asked, equations, moments, plain.values, rng=rng)
        return replace(plain, values=values, extras={})

    def _known(self, view: AdversaryView) -> Predicted:
        """The known rows that were predicted; none where none were granted."""
        if view.known_rows():
            return predicted(view)
        nothing, d = np.zeros((0, view.n_classes)), sum(view.widths().values())
        return Predicted(np.zeros((0, d)), nothing, nothing, np.zeros(0, np.int64), 0)

    def _best(
        self,
        view: AdversaryView,
        taught: tuple[Predicted, Rows],
        equations: _Equations,
        rng: np.random.Generator,
    ) -> tuple[Undone | None, Moments]:
        """What errs least on known rows that did not teach it, None for the scores as they are, and the
        moments that it errs least with.
        """
        (known, rows), given, plain = taught, given_own(view), view.moments()
        assert given is not None  # rows are known
        weight, bias = self.believed(view)
        systems = view.model.linear_systems(known.scores, known.own + bias, weight)
        t, part = equations.logits(known.x), rng.permutation(len(known.x)) % _PARTS
        tried: list[tuple[float, Fit | None, Moments]] = []
        for moments, asked in ((plain, plain), (of_rows(given.known, known.places), given.asked)):
            as_is = self.solved(systems, weight.shape[1], rng=rng, moments=moments).values
            tried.append((_squares(as_is, known.x), None, asked))
            for fit in FITS:
                found = as_is.copy()
                for left in (part == i for i in range(_PARTS)):
                    undone, own = fit(rows.of(~left), t[~left]), of_rows(moments, left)
                    found[left] = self._found(undone, rows.of(left), equations, own, as_is[left], rng=rng)
                tried.append((_squares(found, known.x), fit, asked))
        _, best, moments = min(tried, key=lambda one: one[0])
        return (best(rows, t) if best else None), moments

    def _found(
        self,
        undone: Undone,
        rows: Rows,
        equations: _Equations,
        moments: Moments | None,
        plain: Array,
        *,
        rng: np.random.Generator,
    ) -> Array:
        """The columns (n, d) of ``rows``, noise taken for columns too; ``plain`` (n, d) where ``undone`` says
        nothing.
        """
        (q, d), values = equations.A.shape, plain.copy()
        sides = undone.sides(rows) - undone.scale * equations.offset
        told: Array = ~np.isnan(sides).any(axis=1)
        own = of_rows(moments, told)
        assert own is not None
        assert own.covariance is not None  # lmmse refuses without
        mean = np.concatenate([own.mean, np.zeros((*own.mean.shape[:-1], q))], axis=-1)
        both = Moments(mean, block_diagonal([own.covariance, undone.noise]))
        A = np.hstack([undone.scale * equations.A, np.eye(q)])
        values[told] = self.solve(A, sides[told], rng=rng, moments=both).values[:, :d]
        return values


class _Equations(NamedTuple):
    """The differences (q, k) of logits that all scores show: of x they are ``A`` (q, d) x + ``offset``."""

    differ: Array
    A: Array
    offset: Array

    @classmethod
    def of(cls, attack: LinearMMSE, view: AdversaryView) -> _Equations:
        weight, bias = attack.believed(view)
        nothing = np.zeros((1, len(bias)))
        differ = view.model.linear_systems(nothing, nothing, np.eye(len(bias)))[0][1].A
        return cls(differ, differ @ weight, differ @ bias)

    def logits(self, x: Array) -> Array:
        """(n, q) of rows ``x`` (n, d)."""
        t: Array = x @ self.A.T + self.offset
        return t


def _rows(scores: Array, own: Array, equations: _Equations) -> Rows:
    """Rows with released ``scores`` and ``own`` logits (n, k). A score of 0 counts as half of the least one.

    Rows that share the least lead of the highest score are of their own kind: a label may have been lifted.
    """
    finite, top = np.isfinite(scores), scores == scores.max(axis=1, keepdims=True)
    filled = np.where(finite, scores, scores[finite].min(initial=0.0) - np.log(2))
    lead = np.diff(np.sort(filled, axis=1)[:, -2:], axis=1).sum(axis=1)
    least = lead < lead.min() + _SAME
    marks = [finite, top, (least & (least.sum() > 1))[:, None]]
    kinds, kind = np.unique(np.hstack(marks), axis=0, return_inverse=True)
    differ = equations.differ.T
    return Rows(filled @ differ, own @ differ, kind.reshape(-1), len(kinds))


def _squares(answer: Array, x: Array) -> float:
    return float(((np.clip(answer, 0, 1) - x) ** 2).sum())
