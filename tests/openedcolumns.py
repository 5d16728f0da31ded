"""Columns from what protected training opened: features, logits, and the changes of θ.

They are features whose mask is zero, public, dealt by the party or that of other rows; or follow from logits,
residuals or parameters whose mask is missing or that of all steps, or from gradients. Granted rows help.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from openings import (
    Changes,
    OpenedStep,
    columns_of,
    from_the_first,
    opened_features,
    openings,
    parameters,
    placed,
    ridge,
    scale_of,
    signed,
    unmasked,
    weights_of_rows,
)
from rowsofdescent import rows_of_descent

from vflens.errors import KnowledgeError
from vflens.numerics.shares.scale import FEATURE_BITS
from vflens.numerics.shares.sigmoid import LOGIT_BITS
from vflens.plugins.views.vertical import AdversaryView
from vflens.randomness import stream
from vflens.types import Array, Point

_ROUNDS = 6  # of residuals from columns, and columns from residuals
_MOST_WEIGHTS = 1 << 22  # of rows in logits of steps: later steps are left out
_ONE = 2.0**FEATURE_BITS


def found_columns(view: AdversaryView, masks: Array | None = None) -> Array:
    """The columns (N, d) in [0, 1] of the rows of ``view``, whose party may have dealt ``masks``; ½ where all
    masks are sound.
    """
    found = _OpenedColumns(view, masks)
    attempts = (found.of_known_masks, found.of_shared_masks, found.of_logits, found.of_changes)
    values = next((x for attempt in attempts if (x := attempt()) is not None), found.nothing)
    return np.clip(values[placed(found.rows, view.rows, view.party)], 0, 1)


class _OpenedColumns:
    """What ``view`` gives of its target's columns; its party may have dealt ``masks``.

    Each attempt answers (n, d) of all training ``rows``, or None where masks hide them.

    Raises:
        KnowledgeError: nothing was opened at the party.
    """

    def __init__(self, view: AdversaryView, masks: Array | None) -> None:
        self._view, self._masks = view, masks
        self.rows, self._opened = opened_features(view)
        self._part = columns_of(view)[view.target]
        granted = view.known_rows()
        mine = list(view.widths()).index(view.target) if granted else 0
        rows, x = granted[mine] if granted else (self.rows[:0], self.nothing[:0])
        self._known, self._granted = placed(self.rows, rows, view.party), x

    @property
    def nothing(self) -> Array:
        """The answer where masks hide everything: ½."""
        return np.full((len(self.rows), self._part.stop - self._part.start), 0.5)

    def of_known_masks(self) -> Array | None:
        """The features behind a mask that is known."""
        for mask in _known_masks(self._view, self._opened, self._masks):
            found = signed(self._opened[:, self._part] + mask[:, self._part])
            if np.abs(found).max() <= _ONE:
                return found / _ONE
        return None

    def of_shared_masks(self) -> Array | None:
        """The features of rows that share a mask: exact beside a granted row, else around a guess."""
        opened = self._opened[:, self._part]
        order = np.argsort(opened[:, 0])
        near = np.abs(signed(np.diff(opened[order], axis=0))).max(axis=1, initial=0) <= _ONE
        groups = np.split(order, np.flatnonzero(~near) + 1)
        values, middle = self.nothing, self._granted.mean(axis=0) if len(self._granted) else 0.5
        shared = [group for group in groups if len(group) > 1]
        for group in shared:
            moved = signed(opened[group] - opened[group[0]]) / _ONE
            known = np.flatnonzero(np.isin(group, self._known))
            if len(known):
                truth = self._granted[self._known == group[known[0]]][0]
                values[group] = moved + truth - moved[known[0]]
            else:
                values[group] = moved + middle - (moved.min(axis=0) + moved.max(axis=0)) / 2
        return values if shared else None

    def of_logits(self) -> Array | None:
        """The features that fit the logits: exact where θ is bare too, else as granted rows tell them from
        rotated ones; it takes as many as there are unknown columns.
        """
        steps = [s for s in openings(self._view) if {"delta", "logits", "rho"} <= s.arrays.keys()]
        logits = self._logits(steps) if steps else None
        if logits is None:
            return None
        theta = parameters(steps)
        if theta is not None:
            return self._solved(self._batches(steps), logits, theta)
        size = len(self.rows) * logits[0].shape[1]
        whole = from_the_first(steps)[: max(1, _MOST_WEIGHTS // size)]
        return self._followed(whole, logits[: len(whole)]) if whole and len(self._known) > 1 else None

    def _batches(self, steps: list[OpenedStep]) -> list[Array]:
        """Where the rows of each of ``steps`` stand."""
        return [placed(self.rows, step.rows, self._view.party) for step in steps]

    def _logits(self, steps: list[OpenedStep]) -> list[Array] | None:
        """Those of :func:`unmasked`, or what bare residuals σ(z) − y and the party's labels say of z.

        They are 0 in the first step, so that one mask for all steps is no mask.
        """
        response = scale_of(self._view).response
        found = unmasked([step.arrays["logits"] - response.offset for step in steps], LOGIT_BITS)
        if found is not None:
            return found[0]
        residuals = self._bare_residuals(steps)
        if residuals is None:
            return None
        return [response.logits(r + y) for r, y in zip(residuals, self._labels(steps), strict=True)]

    def _labels(self, steps: list[OpenedStep]) -> list[Array]:
        """What the logits of each of ``steps`` are to be."""
        return [_targets(self._view, s.rows, s.arrays["rho"].shape[1]) for s in steps]

    def _bare_residuals(self, steps: list[OpenedStep]) -> list[Array] | None:
        found = unmasked([s.arrays["rho"] for s in steps], scale_of(self._view).response.bits)
        return None if found is None or found[1] else found[0]

    def _followed(self, steps: list[OpenedStep], logits: list[Array]) -> Array:
        """The features with which these ``steps``, all from the first on, lead to their own ``logits``."""
        scale, schedule = scale_of(self._view), self._view.schedule
        residuals = self._bare_residuals(steps)
        if residuals is None:
            answers = [scale.response.answered(z) for z in logits]
            residuals = [a - y for a, y in zip(answers, self._labels(steps), strict=True)]
        batches, count = self._batches(steps), len(self.rows)
        weights = weights_of_rows(batches, residuals, count, scale)
        seen = np.full((len(steps), residuals[0].shape[1], count), np.nan)
        for place, batch, z in zip(seen, batches, logits, strict=True):
            place[:, batch] = z.T
        flat = seen.reshape(weights.shape)
        if schedule is not None and not schedule.penalise_bias:
            flat -= (weights_of_rows(batches, residuals, count, scale, decay=0) - weights).sum(axis=1)[
                :, None
            ]
        found = rows_of_descent(weights, flat, *self._guess())
        return found[:, self._part]

    def _guess(self) -> tuple[Array, Array]:
        """All columns (N, d), and which numbers are known, bool: own ones, granted ones, and the bias.

        The others are the mean of granted ones, or ½.
        """
        x, parts = _own(self._view, self.rows, self._opened.shape[1]), columns_of(self._view)
        for party, (rows, granted) in zip(self._view.widths(), self._view.known_rows(), strict=False):
            x[placed(self.rows, rows, self._view.party), parts[party]] = granted
        known = ~np.isnan(x)
        count = known.sum(axis=0)
        middle = np.where(count, np.where(known, x, 0).sum(axis=0) / np.maximum(count, 1), 0.5)
        return np.where(known, x, middle), known

    def _solved(self, batches: list[Array], logits: list[Array], theta: Array) -> Array:
        """The columns nearest to a guess with z = x θ, row by row."""
        x, known_numbers = self._guess()
        unknown = ~known_numbers.all(axis=0)
        for row in range(len(self.rows)):
            met = [(t, np.flatnonzero(batch == row)) for t, batch in enumerate(batches)]
            seen = [(theta[t], logits[t][place[0]]) for t, place in met if len(place)]
            equations = np.concatenate([weight[unknown].T for weight, _ in seen])
            known = np.concatenate([x[row, ~unknown] @ weight[~unknown] for weight, _ in seen])
            right = np.concatenate([z for _, z in seen]) - known
            left = right - equations @ x[row, unknown]
            x[row, unknown] += np.linalg.lstsq(equations, left, rcond=1e-6)[0]
        found: Array = x[:, self._part]
        return found

    def of_changes(self) -> Array | None:
        """The features that fit the gradients, nearest to a guess; granted rows are known."""
        changes = Changes.found(self._view)
        if changes is None:
            return None
        try:
            x, known = self._guess()
            y = _targets(self._view, self.rows, changes.theta.shape[2])
        except KnowledgeError:  # the coordinator has neither columns nor labels
            return None
        unknown = ~known.all(axis=0)
        free = np.setdiff1d(np.arange(len(self.rows)), self._known)
        batches = self._batches(changes.steps)
        right = changes.gradients()[:, unknown].transpose(0, 2, 1).reshape(-1, unknown.sum())
        prior = x[:, unknown].copy()
        for _ in range(_ROUNDS):
            equations = np.zeros((len(batches), y.shape[1], len(self.rows)))
            for t, batch in enumerate(batches):
                equations[t][:, batch] = changes.residuals(x[batch], t, y[batch]).T
            flat = equations.reshape(-1, len(self.rows))
            left = right - flat[:, self._known] @ prior[self._known]
            x[np.ix_(free, unknown)] = np.clip(ridge(flat[:, free], left, prior[free]), 0, 1)
        found: Array = x[:, self._part]
        return found


def _known_masks(view: AdversaryView, opened: Array, masks: Array | None) -> Iterator[Array]:
    """Masks uint64 (n, d) of the features that the party may know."""
    yield np.zeros_like(opened)
    run = next(r.exchange.run for r in view.received(Point.SHARES))
    public = stream(run.encode(), "features").integers(0, 2**64, opened.shape, np.uint64)
    yield public
    yield public + public
    if masks is not None:
        yield masks


def _own(view: AdversaryView, rows: Array, width: int) -> Array:
    """All columns (n, d) as far as the party has them, the others NaN; the bias is known."""
    x = np.ones((len(rows), width))
    for party, part in columns_of(view).items():
        x[:, part] = view.own("features", rows) if party == view.party else np.nan
    return x


def _targets(view: AdversaryView, rows: Array, logits: int) -> Array:
    """What each of the ``logits`` is to be: of classes 0 or 1, and of a number itself."""
    labels = view.own("labels", rows)
    if labels.dtype.kind == "f":
        return labels[:, None]
    y = np.eye(view.n_classes)[labels.astype(np.intp)]
    return y[:, 1:] if logits == 1 else y
