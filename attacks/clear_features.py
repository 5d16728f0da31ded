"""Training in the clear: all columns up to one affine map, from the summed logits of every step (ours).

No parameter, no score, no gradient is read. It measures what the assumption of secure training hides.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from vflens.errors import KnowledgeError
from vflens.numerics.factorization import factorize
from vflens.plugins.attack import Attack
from vflens.plugins.view import AdversaryView
from vflens.types import Array, Estimate, Knowledge, Phase, Point, RowStatus, statuses

_MISFIT = 1e-2  # relative: rows that the factors explain no better are flagged


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
        """Rows that the factors explain badly are NOT_CONVERGED; see
        :meth:`vflens.plugins.attack.Attack.reconstruct`.

        Raises:
            KnowledgeError: several passive parties, or a row that was in no step, or fewer rows than columns.
        """
        if len(view.widths()) > 1:
            raise KnowledgeError(
                "clear_features reads the logits of one passive party: sums of several mix their columns"
            )
        d = view.widths()[view.target]
        steps = [(r.rows, r.tensor("embedding")) for r in view.received(Point.EMBEDDING)]
        known, place = _positions([rows for rows, _ in steps], view)
        if len(known) <= d:
            raise KnowledgeError(
                f"the logits of {len(known)} training rows reached {view.party!r}: more than {d} are needed "
                f"for {d} columns"
            )
        compact = [(np.searchsorted(known, rows), z) for rows, z in steps]
        factors = factorize(compact, len(known), d, self.sweeps)
        low, high = factors.x.min(axis=0), factors.x.max(axis=0)
        values = (factors.x - low) / np.where(high > low, high - low, 1)
        misfit = factors.residual[place]
        status = statuses(len(view.rows))
        status[misfit > _MISFIT] = RowStatus.NOT_CONVERGED
        return Estimate(view.target, view.rows, values[place], status, {"residual": misfit})


def _positions(batches: list[Array], view: AdversaryView) -> tuple[Array, Array]:
    """The distinct rows of all batches in order, and where those of ``view`` stand among them."""
    known = np.unique(np.concatenate(batches)) if batches else np.zeros(0, np.int32)
    missing = np.setdiff1d(view.rows, known)
    if len(missing):
        raise KnowledgeError(
            f"no logits of {len(missing)} rows (first: {missing[0]}) arrived in training{view.sampling()}: "
            "ask for training rows"
        )
    return known, np.searchsorted(known, view.rows)
