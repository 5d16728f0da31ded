"""What the attacks on protected training share: what was opened with no mask, or with one for all steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vflens.errors import KnowledgeError
from vflens.numerics.shares.scale import PARAMETER_BITS, Scale
from vflens.numerics.shares.truncation import LIMIT, OFFSET
from vflens.plugins.opened import OpenedStep
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array

_MOST_EQUATIONS = 2000  # of steps and logits: the system is dense
_OF_ROWS = 0.6  # equations a row: later steps depend more on what is still unknown, and would be fitted too
#: Numbers behind a sound mask are uniform: among a dozen hardly ever is none beyond.
_HIDDEN = 2.0**48


def signed(numbers: Array) -> Array:
    """uint64 in two's complement, as float64."""
    return numbers.view(np.int64).astype(np.float64)


def unmasked(arrays: Sequence[Array], bits: int) -> tuple[list[Array], bool] | None:
    """The numbers of ``arrays`` uint64 with ``bits`` fraction bits, which stand at the same places in each.

    Returns:
        They, if their mask is zero, and False; less those of the first array, if all have one mask, and True;
        None where they are hidden. Arrays are cut to the length of the first.
    """
    first = arrays[0]
    for masks, relative in ((np.zeros_like(first), False), (first, True)):
        found = [signed(a[: len(first)] - masks[: len(a)]) for a in arrays]
        if len(found) > relative and max(np.abs(numbers).max() for numbers in found) < _HIDDEN:
            return [numbers * 2.0**-bits for numbers in found], relative
    return None


def from_the_first(steps: Sequence[OpenedStep]) -> list[OpenedStep]:
    """``steps`` up to the first that lacks: parameters are 0 before the run's first."""
    return [step for number, step in enumerate(steps) if step.number == number]


def weights_of_rows(
    batches: Sequence[Array],
    residuals: Sequence[Array],
    rows: int,
    scale: Scale,
    *,
    decay: float | None = None,
) -> Array:
    """What each of ``rows`` counts in θ before each step: float64 (T·k', rows).

    A step subtracts the rate times Σ residual·x of its batch, and 2ηλθ, or ``decay`` times θ.
    """
    if decay is None:
        decay = scale.decay * 2.0**-scale.shift
    total, found = np.zeros((residuals[0].shape[1], rows)), list[Array]()
    for batch, residual in zip(batches, residuals, strict=True):
        found.append(total.copy())
        total *= 1 - decay
        total[:, batch] -= scale.rate(len(batch)) * 2.0**-scale.rate_bits * residual.T
    return np.concatenate(found)


def parameters(steps: Sequence[OpenedStep]) -> Array | None:
    """θ before each of ``steps``, the first of the run first, (T, d, k'); None where it is hidden.

    It is 0 at first, so that one mask for all steps is no mask.
    """
    found = unmasked([step.arrays["delta"] for step in steps], PARAMETER_BITS)
    return None if found is None else np.stack(found[0])


@dataclass(frozen=True, eq=False)
class Changes:
    """The changes of θ, float64 (T, d, k'), of ``steps``, and θ before each; ``scale`` is the run's."""

    steps: list[OpenedStep]
    scale: Scale
    changes: Array
    theta: Array

    @classmethod
    def found(cls, view: AdversaryView) -> Changes | None:
        """Those that ``view`` shows, as they were opened or as θ changed; None where both are masked."""
        steps = from_the_first([s for s in view.openings() if {"delta", "change"} <= s.arrays.keys()])
        if len(steps) < 2:
            return None
        scale = view.shared_scale()
        raw = np.stack([signed(step.arrays["change"] - OFFSET) for step in steps])
        if np.abs(raw).max() < LIMIT:  # masked ones are beyond all bounds
            changes = raw * 2.0 ** -(scale.gradient_bits + scale.rate_bits)
            theta = -np.cumsum(changes, axis=0) + changes
        elif (known := parameters(steps)) is not None:
            steps, theta, changes = steps[:-1], known[:-1], -np.diff(known, axis=0)
        else:
            return None
        most = max(1, int(min(_MOST_EQUATIONS, _OF_ROWS * len(view.training_rows))) // changes.shape[2])
        return cls(steps[:most], scale, changes[:most], theta[:most])

    def gradients(self) -> Array:
        """N times the mean gradient of the data, (T, d, k'): Σ residual·x over the rows of a step."""
        decay = self.scale.decay * 2.0**-self.scale.shift
        rates = [self.scale.rate(len(s.rows)) * 2.0**-self.scale.rate_bits for s in self.steps]
        found: Array = (self.changes - decay * self.theta) / np.array(rates)[:, None, None]
        return found

    def residuals(self, x: Array, step: int, labels: Array) -> Array:
        """Those (n, k') of the rows ``x`` (n, d) of ``step`` and ``labels`` (n, k')."""
        return self.scale.response.of_logits(x @ self.theta[step]) - labels


def ridge(equations: Array, right: Array, prior: Array) -> Array:
    """The x nearest to ``prior`` (N, m) that solves ``equations`` (T, N) x = ``right`` (T, m), nearly."""
    gram = equations @ equations.T
    gram += 1e-6 * np.trace(gram) / len(gram) * np.eye(len(gram))
    found: Array = prior + equations.T @ np.linalg.solve(gram, right - equations @ prior)
    return found


def placed(rows: Array, wanted: Array, party: str) -> Array:
    """Where each of ``wanted`` stands in ``rows``.

    Raises:
        KnowledgeError: one is not there.
    """
    order = np.argsort(rows)
    places = order[np.minimum(np.searchsorted(rows, wanted, sorter=order), len(rows) - 1)]
    if (rows[places] != wanted).any():
        raise KnowledgeError(f"nothing of some of the rows was opened at {party!r}")
    return places
