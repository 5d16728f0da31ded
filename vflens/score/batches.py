"""Scoring of a round's rows, whose order the adversary does not know: by the assignment of least error.

The target alone knows which rows the round held. Blind guesses gain from an assignment too, so theirs are
matched alike.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from vflens.array import ScaledColumns
from vflens.protocol.acts import Guess, Submission
from vflens.randomness import generator
from vflens.score.images import grid_of, psnr, ssim
from vflens.score.pictures import save_pictures
from vflens.score.service import ScoringService
from vflens.score.worst import most_exposed, tolerance_of
from vflens.storage.metrics import Name
from vflens.tables.pixels import pixel_places
from vflens.types import Array, ColumnInfo


def matched_mse(guess: Array, truth: Array) -> tuple[float, Array]:
    """The mean squared error per number under the best one-to-one assignment, and the order int (n,) of
    ``guess`` that reaches it: row i of ``truth`` is guessed by row order[i].

    Args:
        guess: (m, d), m ≥ n: where it is more, some are nobody's.
        truth: (n, d).

    Raises:
        ValueError: the widths differ, or there are fewer guesses than rows.
    """
    if truth.ndim != 2 or guess.shape[1:] != truth.shape[1:] or len(guess) < len(truth):
        raise ValueError(f"guessed rows {guess.shape} against {truth.shape}: give as many of the same width")
    from scipy.optimize import linear_sum_assignment  # slow to load, for few attacks
    from scipy.spatial.distance import cdist

    squares = cdist(truth, guess, "sqeuclidean")
    rows, order = linear_sum_assignment(squares)
    return float(squares[rows, order].sum() / truth.size), order


def blind_matched_mse(truth: Array, means: Array, rng: np.random.Generator, guesses: int) -> dict[str, float]:
    """:func:`matched_mse` of guesses without an attack, by name: 0, ½, the columns' ``means`` (d,), and one
    draw of as many uniform rows as an attack ``guesses``, which gains from the assignment as it does.
    """
    shape = guesses, truth.shape[1]
    blind: dict[str, float | Array] = {
        "zero": 0.0,
        "half": 0.5,
        "column_means": means,
        "random": rng.random(shape),
    }
    return {name: matched_mse(np.broadcast_to(guess, shape), truth)[0] for name, guess in blind.items()}


RowsOf: TypeAlias = Callable[[int], Array]  # the rows int32 (n,) of a round


class BatchColumnScoring(ScoringService):
    """Mean squared errors of a round's rows, matched, and cells and whole rows found within a tolerance; of
    images PSNR and SSIM in their place.

    Args:
        truth: the target's columns (N, d), scaled, before any defence.
        columns: their metadata.
        training: rows whose column means are the blind guess "column_means".
        rows_of: the rows of a round.
        folder: the target's; receives the arrays of pictures, ``pictures`` rows of them.
        tolerance: see :class:`vflens.score.columns.ColumnScoring`.
        service: see :class:`vflens.score.service.ScoringService`.
    """

    def __init__(
        self,
        *,
        truth: ScaledColumns,
        columns: tuple[ColumnInfo, ...],
        training: Array,
        rows_of: RowsOf,
        folder: Path,
        pictures: int,
        tolerance: Mapping[str, float] = MappingProxyType({}),
        **service: Any,
    ) -> None:
        super().__init__(width=truth.shape[1], folder=folder, **service)
        self._truth, self._rows_of, self._means = truth, rows_of, truth.mean(training)
        self._grid, self._folder, self._pictures = grid_of(columns), folder, pictures
        self._training, self._tolerance = training, None
        if pixel_places(columns) is None:
            self._tolerance = tolerance_of(truth, columns, tolerance)

    def keep_errors(self, submission: Submission) -> dict[str, float]:
        """See :meth:`vflens.score.service.ScoringService.keep_errors`: the errors are matched MSEs of guesses
        moved into the box.
        """
        assert submission.step is not None
        rows = self._rows_of(submission.step)
        truth, add = self._truth[rows], self.adding(submission)
        drawn = generator(submission.step.to_bytes(32, "little"))  # one draw, of a known stream: no secret
        for name, error in blind_matched_mse(truth, self._means, drawn, len(submission.rows)).items():
            add(Name.BLIND_MATCHED_MSE, error, attack=name)
        self._blind_cells(truth, add)
        inside = {g.attack: g.in_box().values for g in submission.guesses}
        ordered = {name: values[matched_mse(values, truth)[1]] for name, values in inside.items()}
        self._save_pictures(rows, truth, ordered, submission.metrics_of)
        return {
            name: self._error(values, truth, partial(add, attack=name)) for name, values in ordered.items()
        }

    def _blind_cells(self, truth: Array, add: Callable[..., None]) -> None:
        """What the constants that find most of the training rows find: a constant has no order."""
        if self._tolerance is None:
            return
        cells = self._tolerance.found(self._tolerance.best_constant(self._truth[self._training]), truth)
        add(Name.BLIND_CELLS_FOUND, cells.mean())
        add(Name.BLIND_ROWS_FOUND, cells.all(axis=1).mean())

    def _error(self, values: Array, truth: Array, add: Callable[..., None]) -> float:
        per_row = ((values - truth) ** 2).mean(axis=1)
        error = float(per_row.mean())
        add(Name.MATCHED_MSE, error)
        if self._tolerance is not None:
            shares = self._tolerance.shares(values, truth, self._truth[:])
            add(Name.CELLS_FOUND, shares.cells)
            add(Name.ROWS_FOUND, shares.rows)
            add(Name.ROWS_UNIQUE, shares.unique)
            add(Name.EXPOSED_MSE, per_row[most_exposed(per_row)].mean())
        if self._grid is not None:
            add(Name.PSNR, float(psnr(np.array(error))))
            add(Name.SSIM, float(ssim(values, truth, self._grid).mean()))
        return error

    def _save_pictures(self, rows: Array, truth: Array, ordered: dict[str, Array], of: str) -> None:
        if not self._pictures:
            return
        drawn = slice(0, self._pictures)
        estimates = {name: values[drawn] for name, values in ordered.items()}
        save_pictures(self._folder, rows[drawn], truth[drawn], estimates, of)


class BatchLabelScoring(ScoringService):
    """The share of a round's labels that a guess has too, each label as often as it comes.

    Args:
        labels: int64 (N,) of all rows.
        n_classes: k; a guess has a number for each class.
        training: rows whose most frequent class is the blind guess for all.
        rows_of: the rows of a round.
        service: see :class:`vflens.score.service.ScoringService`.
    """

    def __init__(
        self, *, labels: Array, n_classes: int, training: Array, rows_of: RowsOf, **service: Any
    ) -> None:
        super().__init__(width=n_classes, **service)
        self._labels, self._rows_of, self._classes = labels, rows_of, n_classes
        self._likeliest = int(np.bincount(labels[training]).argmax())

    def keep_errors(self, submission: Submission) -> dict[str, float]:
        """See :meth:`vflens.score.service.ScoringService.keep_errors`; errors are shares of wrong labels."""
        assert submission.step is not None
        truth = self._count(self._labels[self._rows_of(submission.step)])
        add, n = self.adding(submission), len(submission.rows)
        add(Name.BLIND_MATCHED_LABEL_ACCURACY, truth[self._likeliest] / n)
        errors = {}
        for guess in submission.guesses:
            right = float(np.minimum(self._guessed(guess), truth).sum() / n)
            add(Name.MATCHED_LABEL_ACCURACY, right, attack=guess.attack)
            errors[guess.attack] = 1 - right
        return errors

    def _guessed(self, guess: Guess) -> Array:
        return self._count(guess.values.argmax(axis=1))

    def _count(self, labels: Array) -> Array:
        """How often each class comes (k,)."""
        return np.bincount(labels, minlength=self._classes)
