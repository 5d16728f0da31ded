"""What an adversary would read of protected training: opened with no mask, or with one for all steps.

With sound masks it reads nothing. Mutants of the protocol are found by it (``mutants.py``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from vflens.errors import KnowledgeError
from vflens.numerics.shares.scale import PARAMETER_BITS, Scale, fitting
from vflens.numerics.shares.truncation import LIMIT, OFFSET
from vflens.plugins.attack import Attack
from vflens.plugins.views.vertical import AdversaryView
from vflens.protocol.vertical.shares import shared_columns
from vflens.types import Array, Estimate, Knowledge, Phase, Point, Released

_MOST_EQUATIONS = 2000  # of steps and logits: the system is dense
_OF_ROWS = 0.6  # equations a row: later steps depend more on what is still unknown, and would be fitted too
#: Numbers behind a sound mask are uniform: among a dozen hardly ever is none beyond.
_HIDDEN = 2.0**48


class OpenedStep(NamedTuple):
    """What the step ``number`` opened, of its ``rows`` int32 (n,): "delta" and "change" (d, k'), "logits" and
    "rho" (n, k'), uint64; what was not recorded lacks.
    """

    number: int
    rows: Array
    arrays: Mapping[str, Array]


def opened_steps(messages: Iterable[Released]) -> list[OpenedStep]:
    """What each step opened, from the messages of one party, in the order of steps."""
    rows: dict[int, Array] = {}
    found: dict[int, dict[str, Array]] = {}
    for message in messages:
        step, second = divmod(message.exchange.step, 2)
        if len(message.rows):
            rows[step] = message.rows
        for name, array in (message.tensors or {}).items():
            if not name.endswith(" share"):
                before = not second and name in ("change", "rho")
                found.setdefault(step - before, {})[name] = array.view(np.uint64)
    return [OpenedStep(step, rows[step], found[step]) for step in sorted(found) if step in rows]


class Opened(Attack):
    """What a party may know that reads all that was opened at it."""

    needs: ClassVar[frozenset[Knowledge]] = frozenset(
        {Knowledge.OPENINGS, Knowledge.OWN_FEATURES, Knowledge.OWN_LABELS, Knowledge.METADATA}
    )
    helped_by: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.AUXILIARY})
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN, Phase.DISCLOSE})

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        raise NotImplementedError


def scale_of(view: AdversaryView) -> Scale:
    """The integers of protected training."""
    response, schedule = view._model.response, view.schedule
    assert response is not None
    assert schedule is not None
    return fitting(
        response,
        schedule.learning_rate,
        schedule.l2,
        schedule.batch_size,
        columns=sum(len(p.columns) for p in view._parties.values()) + 1,
        steps=schedule.epochs * math.ceil(len(view.training_rows) / schedule.batch_size),
    )


def columns_of(view: AdversaryView) -> Mapping[str, slice]:
    """Where the columns of each party stand in protected training; the one between is the bias."""
    parts = shared_columns(list(view._parties.values()))
    return {n: slice(p.start, p.start + len(view._parties[n].columns)) for n, p in parts.items()}


def opened_features(view: AdversaryView) -> tuple[Array, Array]:
    """The training rows int32 (n,) whose features were opened behind their masks, and these uint64 (n, d)."""
    found = [r for r in view.received(Point.SHARES) if "features" in (r.tensors or {})]
    if not found:
        raise KnowledgeError(f"no features of training rows were opened at {view.party!r}")
    features = np.concatenate([r.tensor("features") for r in found]).view(np.uint64)
    return np.concatenate([r.rows for r in found]), features


def openings(view: AdversaryView) -> list[OpenedStep]:
    """What each step of protected training opened, as it arrived."""
    steps = opened_steps(view.received(Point.OPENING))
    assert steps
    return steps


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
        steps = from_the_first([s for s in openings(view) if {"delta", "change"} <= s.arrays.keys()])
        if len(steps) < 2:
            return None
        scale = scale_of(view)
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


def likely_labels(view: AdversaryView) -> Array:
    """Beliefs (N, k): from residuals whose mask is missing or another step's, or from bare gradients."""
    steps = [step for step in openings(view) if "rho" in step.arrays]
    likely = _from_residuals(steps, scale_of(view).response.bits) or _from_changes(view)
    beliefs = np.full((len(view.rows), view.n_classes), 1 / view.n_classes)
    for place, row in enumerate(view.rows.tolist()):
        if row in likely:
            own = likely[row]
            beliefs[place] = [1 - own[0], own[0]] if len(own) == 1 else own / max(own.sum(), 1e-9)
    return beliefs


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
    own = columns_of(view)[view.party]
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
