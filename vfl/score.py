"""The target's scoring service: reconstructions come in, a receipt goes out, errors stay at home.

Figures that go back to the submitter would be an oracle for the truth, however rounded or rationed: two
submissions that differ in one cell give that cell. So the answer depends on nothing private. Only where
one owner holds all parties (``lab``) do the errors go back too.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
from structlog.typing import FilteringBoundLogger

from vfl.acts import Guess, Receipt, Submission
from vfl.arrays import save_arrays
from vfl.errors import ProtocolError, StateError
from vfl.metrics import Metrics
from vfl.types import Array, RowStatus

MIN_ROWS = 50  # fewer rows come close to naming one person's error; allowed in lab mode only
_HUGE = 1e70
_MILESTONES = (1, 2, 5)


def scorable(values: Array) -> bool:
    """Whether all values and their squares are finite."""
    return bool((np.abs(values) < _HUGE).all())


def milestones(total: int) -> list[int]:
    """How many rows are scored on the way to ``total``: 50, 100, 200, 500, 1000, …, then ``total``."""
    steps = [m * 10**e for e in range(1, 9) for m in _MILESTONES]
    return [*(s for s in steps if MIN_ROWS <= s < total), total]


class ScoringService:
    """Scores submissions against the target's own columns.

    Args:
        party: the target's name.
        truth: its columns for all aligned rows, float64 (N, d), scaled to [0, 1], before any defence.
        column_names: their names.
        training: rows whose column means are the blind guess "column_means".
        lab: errors go back to the submitter.
        metrics, log: where the errors are kept, at the target.
        folder: where pictures are drawn from; ``pictures`` rows of them.
    """

    def __init__(
        self,
        *,
        party: str,
        truth: Array,
        column_names: tuple[str, ...],
        training: Array,
        lab: bool,
        metrics: Metrics,
        log: FilteringBoundLogger,
        folder: Path,
        pictures: int,
    ) -> None:
        self._party, self._truth, self._columns, self._lab = party, truth, column_names, lab
        self._means = truth[training].mean(axis=0)
        self._metrics, self._log, self._folder, self._pictures = metrics, log, folder, pictures
        self._lock = threading.Lock()

    def score(self, submission: Submission, scored: Array) -> Receipt:
        """Keep the errors of every guess; answer with a receipt.

        Args:
            submission: the guesses.
            scored: the rows that may be scored, in order; the submission names the first n of them.

        Raises:
            ProtocolError: rows or shapes that do not fit; fewer than 50 rows outside lab mode.
        """
        self._check(submission, scored)
        with self._lock:
            self._blind(submission)
            errors = {guess.attack: self._error(guess, submission) for guess in submission.guesses}
            if submission.scored_set == "predict":
                self._save_pictures(submission)
            self._metrics.save()
        self._log.info("scored", rows=len(submission.rows), scored_set=submission.scored_set, mse=errors)
        return Receipt(len(submission.rows), len(submission.guesses), errors if self._lab else {})

    def _check(self, submission: Submission, scored: Array) -> None:
        n, d = len(submission.rows), self._truth.shape[1]
        if n == 0 or not np.array_equal(submission.rows, scored[:n]):
            raise ProtocolError(
                f"submission of {n} {submission.scored_set} rows: it must name the first rows that were released, in that order"
            )
        if n < MIN_ROWS and not self._lab:
            raise ProtocolError(
                f"submission of {n} rows: fewer than {MIN_ROWS} are scored in lab mode only, wait for more predictions"
            )
        for guess in submission.guesses:
            if guess.values.shape != (n, d) or len(guess.status) != n:
                raise ProtocolError(
                    f"attack {guess.attack!r} submitted values of shape {guess.values.shape}: ({n}, {d}) is needed"
                )
            if not scorable(guess.values):
                raise ProtocolError(
                    f"attack {guess.attack!r} submitted NaN or infinite values: give a finite guess for every cell"
                )

    def _blind(self, submission: Submission) -> None:
        """Errors of the guesses that need no attack; "random" in expectation: E(U − x)² = x² − x + 1/3."""
        truth = self._truth[submission.rows]
        squares: Mapping[str, Array] = {
            "zero": truth**2,
            "half": (truth - 0.5) ** 2,
            "random": truth**2 - truth + 1 / 3,
            "column_means": (truth - self._means) ** 2,
        }
        add = partial(
            self._metrics.add, target=self._party, scored_set=submission.scored_set, rows=len(truth)
        )
        for name, square in squares.items():
            add("blind_mse", square.mean(), attack=name)
        best = np.min([s.mean(axis=0) for s in squares.values()], axis=0)
        for column, value in zip(self._columns, best, strict=True):
            add("column_blind_mse", value, column=column)

    def _error(self, guess: Guess, submission: Submission) -> float:
        square = (guess.values - self._truth[submission.rows]) ** 2
        per_row = square.mean(axis=1)
        n = len(per_row)
        add = partial(
            self._metrics.add,
            attack=guess.attack,
            target=self._party,
            scored_set=submission.scored_set,
            rows=n,
        )
        add("mse", per_row.mean())
        add("mse_stderr", per_row.std(ddof=min(1, n - 1)) / np.sqrt(n))
        add("unusable", (guess.status != RowStatus.OK).mean())
        for column, value in zip(self._columns, square.mean(axis=0), strict=True):
            add("column_mse", value, column=column)
        return float(per_row.mean())

    def _save_pictures(self, submission: Submission) -> None:
        if not self._pictures:
            return
        drawn = slice(0, self._pictures)
        arrays = {f"estimate:{g.attack}": g.values[drawn] for g in submission.guesses}
        rows = submission.rows[drawn]
        save_arrays(self._folder / "pictures.npz", {"rows": rows, "original": self._truth[rows], **arrays})


def disabled() -> StateError:
    """The refusal of a target that does not score."""
    return StateError(
        "scoring is switched off at the target (scoring.enabled = false): attacks run, their errors stay unknown"
    )
