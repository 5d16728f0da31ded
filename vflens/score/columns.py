"""A passive party's scoring service: reconstructions of its columns against its own table."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from vflens.array import ScaledColumns
from vflens.numerics.binary_columns import matched
from vflens.numerics.entropy import conditional_entropy, entropy, nearest_letters
from vflens.numerics.estimators.affine import affine_fit
from vflens.protocol.acts import Guess, Submission, together
from vflens.score.images import grid_of, psnr, ssim
from vflens.score.pictures import save_pictures
from vflens.score.service import ScoringService
from vflens.score.theory import ReleasedModel, noise_weights, theory_metrics
from vflens.score.worst import letters_of, most_exposed, most_frequent, tolerance_of
from vflens.storage.files import write_whole
from vflens.storage.metrics import Name
from vflens.tables.pixels import pixel_places
from vflens.types import Array, ColumnInfo, Phase, RowStatus

#: Figure of an attack → the same of a blind guess.
_OF_A_GUESS = {Name.PSNR: Name.BLIND_PSNR, Name.SSIM: Name.BLIND_SSIM}


class ColumnScoring(ScoringService):
    """Mean squared errors of the target's columns, and those of blind guesses; of images PSNR and SSIM too.

    Args:
        truth: its columns (N, d) for all aligned rows, scaled, before any defence.
        columns: their metadata; a column with an alphabet is scored in bits, and by its share of right
            values, too: each estimate stands for the nearest value that the column takes.
        training: rows whose column means are the blind guess "column_means".
        folder: the target's; receives the arrays of pictures, ``pictures`` rows of them, of the scored set
            ``pictured`` and of training rows, and the most exposed rows of each attack.
        tolerance: column → how far from the truth, in its own unit, an answer counts as found.
        told_means: returns the means (d,) of what a party was granted, ½ without a grant; None: the means of
            answers are not compared.
        model: returns the target's part of the trained model, for theory; None if it does not describe the
            released scores.
        service: see :class:`vflens.score.service.ScoringService`.
    """

    def __init__(
        self,
        *,
        truth: ScaledColumns,
        columns: tuple[ColumnInfo, ...],
        training: Array,
        folder: Path,
        pictures: int,
        pictured: str = "predict",
        tolerance: Mapping[str, float] = MappingProxyType({}),
        told_means: Callable[[str], Array] | None = None,
        model: Callable[[], ReleasedModel | None] = lambda: None,
        **service: Any,
    ) -> None:
        super().__init__(width=truth.shape[1], folder=folder, **service)
        self._truth, self._columns, self._model = truth, columns, model
        self._told_means = told_means
        self._means = truth.mean(training)
        self._are_pixels, self._grid = pixel_places(columns) is not None, grid_of(columns)
        self._folder, self._pictures, self._pictured = folder, pictures, pictured
        self._exposed: dict[str, dict[str, list[int]]] = {}  # scored set → attack → rows
        self._letters = letters_of(truth, columns)
        self._units = np.ones(len(columns)) if truth.units is None else truth.units
        self._tolerance = tolerance_of(truth, columns, tolerance)

    def keep_errors(self, submission: Submission) -> dict[str, float]:
        """See :meth:`vflens.score.service.ScoringService.keep_errors`: the errors are MSEs of guesses moved
        into the box; theory describes them as they are.
        """
        self._blind(submission)
        errors = {guess.attack: self._error(guess, submission) for guess in submission.guesses}
        self._theory(submission)
        if submission.scored_set in (self._pictured, Phase.TRAIN) or submission.step is not None:
            self._save_pictures(submission)
        return errors

    def _blind(self, submission: Submission) -> None:
        """Errors of guesses without an attack."""
        truth = self._truth[submission.rows]
        add = self.adding(submission)
        guesses = {"zero": 0.0, "half": 0.5, "random": None, "column_means": self._means}
        found = [self._blind_guess(name, value, truth, submission) for name, value in guesses.items()]
        self._by_column(Name.COLUMN_BLIND_MSE, np.min(found, axis=0), submission)
        for j in self._letters:
            add(Name.COLUMN_ENTROPY, entropy(truth[:, j]), column=self._columns[j].name)
        if not self._are_pixels:
            self._blind_in_own_units(truth, submission)
            if self._told_means is not None:
                distance = np.abs(self._told_means(submission.sender) - truth.mean(axis=0))
                self._by_column(Name.COLUMN_BLIND_MEAN_ERROR, distance, submission)
            constants = self._tolerance.constants(truth)
            cells = self._tolerance.found(constants, truth)
            add(Name.BLIND_CELLS_FOUND, cells.mean())
            self._by_column(Name.COLUMN_BLIND_FOUND, cells.mean(axis=0), submission)
            rows: Array = np.all(cells, axis=1)
            add(Name.BLIND_ROWS_FOUND, rows.mean())
            add(Name.BLIND_ROWS_UNIQUE, self._tolerance.unique(constants, rows, self._truth[:]))
            self._by_column(Name.COLUMN_TOLERANCE, self._tolerance.width * self._units, submission)

    def _blind_in_own_units(self, truth: Array, submission: Submission) -> None:
        """What 1 of each column stands for, and of finite columns the share of the most frequent value."""
        if self._truth.units is not None:
            self._by_column(Name.COLUMN_UNIT, self._truth.units, submission)
        add = self.adding(submission)
        for j in self._letters:
            add(Name.COLUMN_BLIND_RIGHT, most_frequent(truth[:, j]), column=self._columns[j].name)

    def _blind_guess(
        self, name: str, value: float | Array | None, truth: Array, submission: Submission
    ) -> Array:
        """Keep the error of the guess ``value``, None: a random one; return that of each column (d,)."""
        square = blind_square(value, truth)
        add = partial(self.adding(submission), attack=name)
        add(Name.BLIND_MSE, square.mean())
        if value is not None:
            everywhere = np.broadcast_to(value, truth.shape)
            for figure, likeness in self._likeness(square.mean(axis=1), everywhere, truth).items():
                add(_OF_A_GUESS[figure], likeness)
        columns: Array = square.mean(axis=0)
        return columns

    def _error(self, guess: Guess, submission: Submission) -> float:
        truth = self._truth[submission.rows]
        inside = guess.in_box().values
        square = (inside - truth) ** 2
        per_row = square.mean(axis=1)
        n = len(per_row)
        add = partial(self.adding(submission), attack=guess.attack)
        add(Name.MSE, per_row.mean())
        add(Name.MSE_STDERR, per_row.std(ddof=min(1, n - 1)) / np.sqrt(n))
        if submission.scored_set == "train" and n >= 2:
            r2, affine_mse = affine_fit(guess.values, truth)
            add(Name.AFFINE_R2, r2)
            add(Name.AFFINE_MSE, affine_mse)
            self._binary(guess, truth, submission)
        self._worst_cases(guess.attack, inside, per_row, submission)
        add(Name.UNUSABLE, 1.0 - guess.has(RowStatus.OK).mean())
        for name, value in self._likeness(per_row, inside, truth).items():
            add(name, value)
        self._by_column(Name.COLUMN_MSE, square.mean(axis=0), submission, guess.attack)
        for j, letters in self._letters.items():
            left = conditional_entropy(truth[:, j], inside[:, j])
            add(Name.COLUMN_CONDITIONAL_ENTROPY, left, column=self._columns[j].name)
            if not self._are_pixels:
                right = nearest_letters(letters, inside[:, j]) == truth[:, j]
                add(Name.COLUMN_RIGHT, right.mean(), column=self._columns[j].name)
        return float(per_row.mean())

    def _worst_cases(self, attack: str, values: Array, per_row: Array, submission: Submission) -> None:
        """Shares of cells and rows that ``values`` (n, d) find; the most exposed rows, which stay in the
        target's folder.
        """
        add = partial(self.adding(submission), attack=attack)
        exposed = most_exposed(per_row)
        add(Name.EXPOSED_MSE, per_row[exposed].mean())
        self._exposed.setdefault(submission.metrics_of, {})[attack] = submission.rows[exposed].tolist()
        write_whole(self._folder / "exposed.json", json.dumps(self._exposed).encode())
        if self._are_pixels:
            return
        truth = self._truth[submission.rows]
        found = self._tolerance.shares(values, truth, self._truth[:])
        add(Name.CELLS_FOUND, found.cells)
        by_column = self._tolerance.found(values, truth).mean(axis=0)
        self._by_column(Name.COLUMN_FOUND, by_column, submission, attack)
        deviation = ((values - truth) ** 2).std(axis=0, ddof=min(1, len(truth) - 1))
        self._by_column(Name.COLUMN_MSE_STDERR, deviation / np.sqrt(len(truth)), submission, attack)
        distance = np.abs(values.mean(axis=0) - truth.mean(axis=0))
        self._by_column(Name.COLUMN_MEAN_ERROR, distance, submission, attack)
        add(Name.ROWS_FOUND, found.rows)
        add(Name.ROWS_UNIQUE, found.unique)

    def _binary(self, guess: Guess, truth: Array, submission: Submission) -> None:
        """For each column of two values the share of rows that a two-valued column of ``guess`` splits
        rightly, beside that of the more frequent value.
        """
        if not any(len(np.unique(column)) == 2 for column in guess.values.T):
            return
        add = partial(self.adding(submission), attack=guess.attack)
        for column, values in zip(self._columns, truth.T, strict=True):
            letters, counts = np.unique(values, return_counts=True)
            if len(letters) == 2:
                add(Name.COLUMN_MATCH, matched(values, guess.values), column=column.name)
                add(Name.COLUMN_BLIND_MATCH, counts.max() / len(values), column=column.name)

    def _by_column(self, metric: Name, values: Array, submission: Submission, attack: str = "") -> None:
        """One row with the figures of all pixels, or one row for each column of a table."""
        if self._are_pixels:
            self.add_columns(metric, values, submission, attack)
            return
        for column, value in zip(self._columns, values, strict=True):
            self.adding(submission)(metric, value, attack=attack, column=column.name)

    def _likeness(self, mse: Array, values: Array, truth: Array) -> dict[Name, float]:
        """PSNR of the mean of the images' errors ``mse`` (n,), and mean SSIM; {} if they are no images.

        A mean of PSNRs would be infinite where one image is exact.
        """
        if self._grid is None:
            return {}
        return {Name.PSNR: float(psnr(mse.mean())), Name.SSIM: float(ssim(values, truth, self._grid).mean())}

    def _theory(self, submission: Submission) -> None:
        model = self._model()
        if model is None or len(together(submission.sender)) > 1:  # theory is of one party's equations
            return
        truth = self._truth[submission.rows]
        add = self.adding(submission)
        for found in theory_metrics({g.attack: g for g in submission.guesses}, truth, model):
            add(found.metric, found.value, attack=found.attack, detail=found.detail)
        weights = noise_weights(model)
        if weights is not None:
            self.add_matrix(Name.THEORY_NOISE_WEIGHT, weights, submission)

    def _save_pictures(self, submission: Submission) -> None:
        if not self._pictures:
            return
        drawn = slice(0, self._pictures)
        rows, of = submission.rows[drawn], submission.metrics_of
        of = "" if of == self._pictured else of
        estimates = {g.attack: g.in_box().values[drawn] for g in submission.guesses}
        save_pictures(self._folder, rows, self._truth[rows], estimates, of)


def blind_square(guess: float | Array | None, truth: Array) -> Array:
    """Squared errors (n, d) of a ``guess`` without an attack; None: a random one, in expectation.

    E(U − x)² = x² − x + 1/3 for U uniform on [0, 1].
    """
    square: Array = truth**2 - truth + 1 / 3 if guess is None else (truth - guess) ** 2
    return square
