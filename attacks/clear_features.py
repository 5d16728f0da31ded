"""Training in the clear: all columns up to one affine map, from the summed logits of every step (ours).

No parameter, no score, no gradient is read. It measures what the assumption of secure training hides.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from vflens.errors import KnowledgeError
from vflens.numerics.factorization import Factors, factorize
from vflens.plugins.attack import Attack
from vflens.plugins.steps import Steps
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Estimate, Knowledge, Phase, Point, RowStatus, statuses
from vflens.words import counted

_MISFIT = 1e-2  # relative: rows that the factors explain no better are flagged


class ClearFactors(NamedTuple):
    """The training ``rows`` int32 (n,) whose logits arrived, ascending, and their factors."""

    rows: Array
    factors: Factors

    def estimate(self, view: AdversaryView, values: Array) -> Estimate:
        """``values`` (n, d) of all rows as the estimate of those of ``view``; rows that the factors explain
        badly are NOT_CONVERGED.
        """
        place = np.searchsorted(self.rows, view.rows)
        misfit = self.factors.residual[place]
        status = statuses(len(place))
        status[misfit > _MISFIT] = RowStatus.NOT_CONVERGED
        return Estimate(view.target, view.rows, values[place], status, extras={"residual": misfit})


class ClearFeatures(Attack):
    """Alternating least squares on logits = rows × changing weights; see
    :mod:`vflens.numerics.factorization`.

    Values are scaled to [0, 1] component by component: only the target knows which mixture of its columns a
    component is; its scoring service measures it (``affine_r2``).
    """

    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.EMBEDDINGS})
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN})
    estimated_rows: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN})
    rowwise: ClassVar[bool] = False
    up_to_affine: ClassVar[bool] = True

    sweeps: int = Field(30, ge=1, le=1_000_000, description="of alternating least squares, at most")

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """See :meth:`vflens.plugins.attack.Attack.reconstruct` and :meth:`ClearFactors.estimate`.

        Raises:
            KnowledgeError: only sums of several parties' logits arrived, a row was in no step, or there are
                fewer rows than columns.
        """
        found = self.found(view)
        x = found.factors.x
        low, high = x.min(axis=0), x.max(axis=0)
        return found.estimate(view, (x - low) / np.where(high > low, high - low, 1))

    def found(self, view: AdversaryView) -> ClearFactors:
        """The factors of all training rows, computed once for all attacks with the same ``sweeps``.

        Raises:
            KnowledgeError: as :meth:`reconstruct`.
        """
        arrived = [rows for _, rows, _ in view.batches(Point.EMBEDDING, Phase.TRAIN)]
        missing = np.setdiff1d(view.rows, np.concatenate(arrived)) if arrived else view.rows
        if len(missing):
            raise KnowledgeError(
                f"no logits of {counted(len(missing), 'row')} (first: {missing[0]}) arrived in "
                f"training{view.sampling()}: ask for training rows"
            )
        return view.learned(("factors of clear training", self.sweeps), lambda: self._factorized(view))

    def _factorized(self, view: AdversaryView) -> ClearFactors:
        d = view.widths()[view.target]
        steps = [(rows, z) for _, rows, z in view.batches(Point.EMBEDDING, Phase.TRAIN)]
        rows = np.unique(np.concatenate([rows for rows, _ in steps]))
        if len(rows) <= d:
            raise KnowledgeError(
                f"the logits of {counted(len(rows), 'training row')} reached {view.party!r}: more than {d} "
                f"are needed for {counted(d, 'column')}"
            )
        compact = [(np.searchsorted(rows, batch), z) for batch, z in steps]
        done = Steps(view.progress, "sweeps", self.sweeps)
        return ClearFactors(rows, factorize(compact, len(rows), d, self.sweeps, done=done))
