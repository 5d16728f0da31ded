"""The target's scoring service: reconstructions come in, a receipt goes out, errors stay at home.

Figures that go back to the submitter would be an oracle for the truth, however rounded or rationed: two
submissions that differ in one cell give that cell. So the answer depends on nothing private. Only where
one owner holds all parties (``lab``) do the errors go back too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
from structlog.typing import FilteringBoundLogger

from vfl.acts import Guess, Receipt, Submission
from vfl.arrays import save_arrays
from vfl.errors import ProtocolError, StateError
from vfl.metrics import Metrics
from vfl.numerics.affine import affine_fit
from vfl.numerics.entropy import conditional_entropy, entropy
from vfl.score_theory import figures
from vfl.types import Array, ColumnInfo, RowStatus

MIN_ROWS = 50  # fewer rows come close to naming one person's error; allowed in lab mode only
MAX_ATTACKS = 256  # in one submission: what it adds to the target's metrics has a bound
MAX_NAME = 64  # characters
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
        columns: their metadata; a column with an alphabet is scored in bits too.
        training: rows whose column means are the blind guess "column_means".
        predicting: how many prediction rows there are in the end; outside lab mode their :func:`milestones` are scored.
        lab: errors go back to the submitter.
        metrics, log: where the errors are kept, at the target.
        folder: where pictures are drawn from; ``pictures`` rows of them.
        weight: gives the target's weights (k, d) once trained, for what theory says of its errors; None where
            they do not describe the released scores.
    """

    def __init__(
        self,
        *,
        party: str,
        truth: Array,
        columns: tuple[ColumnInfo, ...],
        training: Array,
        predicting: int,
        lab: bool,
        metrics: Metrics,
        log: FilteringBoundLogger,
        folder: Path,
        pictures: int,
        weight: Callable[[], Array] | None = None,
    ) -> None:
        self._party, self._truth, self._columns, self._lab = party, truth, columns, lab
        self._weight = weight
        self._means = truth[training].mean(axis=0)
        self.due = milestones(
            predicting
        )  # outside lab mode so many prediction rows are scored, no other number
        self._scored: set[tuple[str, int]] = set()
        self._metrics, self._log, self._folder, self._pictures = metrics, log, folder, pictures
        self._lock = threading.Lock()

    def score(self, submission: Submission, scored: Array) -> Receipt:
        """Keep the errors of every guess; answer with a receipt.

        Args:
            submission: the guesses.
            scored: the rows that may be scored, in order; the submission names the first n of them.

        Raises:
            ProtocolError: rows, names or shapes that do not fit; outside lab mode fewer than 50 rows, or no milestone.
            StateError: these rows were scored before: repetitions would fill the target's disk.
        """
        self._check_rows(submission, scored)
        self._check_guesses(submission)
        with self._lock:
            self._check_once(submission)
            self._blind(submission)
            errors = {guess.attack: self._error(guess, submission) for guess in submission.guesses}
            self._theory(submission)
            if submission.scored_set == "predict":
                self._save_pictures(submission)
            self._metrics.save()
        self._log.info("scored", rows=len(submission.rows), scored_set=submission.scored_set, mse=errors)
        return Receipt(len(submission.rows), len(submission.guesses), errors if self._lab else {})

    def _check_rows(self, submission: Submission, scored: Array) -> None:
        n = len(submission.rows)
        if n == 0 or not np.array_equal(submission.rows, scored[:n]):
            raise ProtocolError(
                f"submission of {n} {submission.scored_set} rows: it must name the first rows that were released, in that order"
            )
        if self._lab:
            return
        if n < MIN_ROWS:
            raise ProtocolError(
                f"submission of {n} rows: fewer than {MIN_ROWS} are scored in lab mode only, wait for more predictions"
            )
        if n not in (self.due if submission.scored_set == "predict" else [len(scored)]):
            raise ProtocolError(
                f"submission of {n} {submission.scored_set} rows: the first 50, 100, 200, 500, … are scored, and all of them at the end"
            )

    def _check_guesses(self, submission: Submission) -> None:
        n, d = len(submission.rows), self._truth.shape[1]
        names = [guess.attack for guess in submission.guesses]
        if not 0 < len(names) <= MAX_ATTACKS or len(set(names)) < len(names):
            raise ProtocolError(
                f"submission of {len(names)} attacks, {len(set(names))} of them distinct: from 1 to {MAX_ATTACKS} are scored, each once"
            )
        for guess in submission.guesses:
            if not (guess.attack.isprintable() and 0 < len(guess.attack) <= MAX_NAME):
                raise ProtocolError(
                    f"attack {guess.attack[:MAX_NAME]!r} has a name of {len(guess.attack)} characters: from 1 to {MAX_NAME} printable ones are due"
                )
            if guess.values.shape != (n, d) or len(guess.status) != n:
                raise ProtocolError(
                    f"attack {guess.attack!r} submitted values of shape {guess.values.shape}: ({n}, {d}) is needed"
                )
            if not scorable(guess.values):
                raise ProtocolError(
                    f"attack {guess.attack!r} submitted NaN or infinite values: give a finite guess for every cell"
                )

    def _check_once(self, submission: Submission) -> None:
        key = submission.scored_set, len(submission.rows)
        if key in self._scored:
            raise StateError(
                f"the first {key[1]} {key[0]} rows were scored before: one submission carries all attacks on them"
            )
        self._scored.add(key)

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
            add("column_blind_mse", value, column=column.name)
        for column, letters in zip(self._columns, truth.T, strict=True):
            if column.alphabet is not None:
                add("column_entropy", entropy(letters), column=column.name)

    def _error(self, guess: Guess, submission: Submission) -> float:
        truth = self._truth[submission.rows]
        square = (guess.values - truth) ** 2
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
        if submission.scored_set == "train" and n >= 2:
            r2, affine_mse = affine_fit(guess.values, truth)
            add("affine_r2", r2)
            add("affine_mse", affine_mse)
        add("unusable", (guess.status != RowStatus.OK).mean())
        for column, value in zip(self._columns, square.mean(axis=0), strict=True):
            add("column_mse", value, column=column.name)
        for j, column in enumerate(self._columns):
            if column.alphabet is not None:
                left = conditional_entropy(truth[:, j], guess.values[:, j])
                add("column_conditional_entropy", left, column=column.name)
        return float(per_row.mean())

    def _theory(self, submission: Submission) -> None:
        if self._weight is None:
            return
        truth = self._truth[submission.rows]
        add = partial(
            self._metrics.add, target=self._party, scored_set=submission.scored_set, rows=len(truth)
        )
        for figure in figures({g.attack: g for g in submission.guesses}, truth, self._weight()):
            add(figure.metric, figure.value, attack=figure.attack)

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
