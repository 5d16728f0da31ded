"""Protected training, attacked: labels from what is opened with a mask missing or used twice (ours).

With sound masks nothing can be read of it, and all classes are believed alike.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from vflens.attacks._openings import Changes, ridge, unmasked
from vflens.plugins.attack import Attack
from vflens.plugins.opened import OpenedStep
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Estimate, Knowledge, Phase, statuses


class OpenedLabels(Attack):
    """Labels from residuals whose mask is missing or that of another step, or from bare gradients."""

    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.OPENINGS, Knowledge.OWN_FEATURES})
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN, Phase.DISCLOSE})
    estimated_rows: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN})
    rowwise: ClassVar[bool] = False
    exact: ClassVar[bool] = False
    estimates = "labels"
    audited = None

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Beliefs (N, k).

        Raises:
            KnowledgeError: nothing was opened at the party.
        """
        steps = [step for step in view.openings() if "rho" in step.arrays]
        likely = _from_residuals(steps, view.shared_scale().response.bits)
        if not likely:
            likely = _from_changes(view)
        beliefs = np.full((len(view.rows), view.n_classes), 1 / view.n_classes)
        for place, row in enumerate(view.rows.tolist()):
            if row in likely:
                own = likely[row]
                beliefs[place] = [1 - own[0], own[0]] if len(own) == 1 else own / max(own.sum(), 1e-9)
        return Estimate(view.target, view.rows, beliefs, statuses(len(view.rows)))


def _from_residuals(steps: list[OpenedStep], bits: int) -> dict[int, Array]:
    """Row → 1 where its label is the class of a logit (k',), of residuals that a mask does not hide; where
    all have the mask of the first step, its own are ½ − y.
    """
    alike = [s for s in steps if s.arrays["rho"].shape == steps[0].arrays["rho"].shape]
    found = unmasked([step.arrays["rho"] for step in alike], bits) if alike else None
    if found is None:
        return {}
    residuals = np.stack(found[0])
    if found[1]:
        residuals += np.where(residuals.max(axis=0) > -residuals.min(axis=0), -0.5, 0.5)
    return {
        row: (residual < 0).astype(float)
        for step, of_step in zip(alike, residuals, strict=True)
        for row, residual in zip(step.rows.tolist(), of_step, strict=True)
    }


def _from_changes(view: AdversaryView) -> dict[int, Array]:
    """The labels that fit the gradients of the party's own columns, nearest to ½; others' columns are taken
    as ½.
    """
    changes = Changes.found(view)
    if changes is None:
        return {}
    own = view.shared_columns()[view.party]
    rows = np.unique(np.concatenate([step.rows for step in changes.steps]))
    x = np.full((len(rows), changes.theta.shape[1]), 0.5)
    x[:, own] = view.own("features", rows)
    equations, right = [], []
    for t, step in enumerate(changes.steps):
        batch = np.searchsorted(rows, step.rows)
        of_columns = np.zeros((own.stop - own.start, len(rows)))
        of_columns[:, batch] = x[batch, own].T
        equations.append(of_columns)
        of_none = changes.residuals(x[batch], t, np.zeros(changes.theta.shape[2]))
        right.append(of_columns[:, batch] @ of_none - changes.gradients()[t, own])
    found = ridge(np.vstack(equations), np.vstack(right), np.full((len(rows), changes.theta.shape[2]), 0.5))
    return dict(zip(rows.tolist(), np.clip(found, 0, 1), strict=True))
