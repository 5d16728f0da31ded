"""What the attacks on protected training share: the changes of θ, where they were opened without a mask."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vflens.errors import KnowledgeError
from vflens.numerics.shares.scale import GRADIENT_BITS, Scale, fitting
from vflens.numerics.shares.truncation import LIMIT, OFFSET
from vflens.plugins.opened import OpenedStep
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array

_MOST_EQUATIONS = 2000  # of steps and logits: the system is dense


def signed(numbers: Array) -> Array:
    """uint64 in two's complement, as float64."""
    return numbers.view(np.int64).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Changes:
    """The changes of θ, float64 (T, d, k'), of ``steps``, and θ before each; ``scale`` is the run's."""

    steps: list[OpenedStep]
    scale: Scale
    changes: Array
    theta: Array

    @classmethod
    def found(cls, view: AdversaryView) -> Changes | None:
        """Those that ``view`` shows; None where they are masked, as masked ones are beyond all bounds."""
        steps = [step for step in view.openings() if "change" in step.arrays]
        if not steps or view.schedule is None:
            return None
        raw = np.stack([signed(step.arrays["change"] - OFFSET) for step in steps])
        if np.abs(raw).max() >= LIMIT:
            return None
        schedule = view.schedule
        scale = fitting(schedule.learning_rate, schedule.l2, schedule.batch_size)
        changes = raw * 2.0 ** -(GRADIENT_BITS + scale.rate_bits)
        theta = -np.cumsum(changes, axis=0) + changes  # before the step
        most = _MOST_EQUATIONS // changes.shape[2]
        return cls(steps[:most], scale, changes[:most], theta[:most])

    def gradients(self) -> Array:
        """N times the mean gradient of the data, (T, d, k'): Σ residual·x over the rows of a step."""
        decay = self.scale.decay * 2.0**-self.scale.shift
        rates = [self.scale.rate(len(s.rows)) * 2.0**-self.scale.rate_bits for s in self.steps]
        found: Array = (self.changes - decay * self.theta) / np.array(rates)[:, None, None]
        return found


def ridge(equations: Array, right: Array, prior: Array) -> Array:
    """The x nearest to ``prior`` (N, m) that solves ``equations`` (T, N) x = ``right`` (T, m), nearly."""
    gram = equations @ equations.T
    gram += 1e-6 * np.trace(gram) / len(gram) * np.eye(len(gram))
    found: Array = prior + equations.T @ np.linalg.solve(gram, right - equations @ prior)
    return found


def sigmoid(z: Array) -> Array:
    """σ(z)."""
    found: Array = 1 / (1 + np.exp(-np.clip(z, -30, 30)))
    return found


def placed(rows: Array, view: AdversaryView) -> Array:
    """Where each of ``view.rows`` stands in ``rows``.

    Raises:
        KnowledgeError: one is not there.
    """
    order = np.argsort(rows)
    places = order[np.minimum(np.searchsorted(rows, view.rows, sorter=order), len(rows) - 1)]
    if (rows[places] != view.rows).any():
        raise KnowledgeError(f"nothing of some of the rows was opened at {view.party!r}")
    return places
