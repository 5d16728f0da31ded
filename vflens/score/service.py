"""The target's scoring service: it takes guesses, returns a receipt and keeps the errors.

Errors in the answer would be an oracle for the truth, even if rounded or rationed: two submissions that
differ in one cell reveal that cell. So the answer does not depend on private data. Only with one owner of all
parties (``lab``) does it contain the errors.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vflens.errors import ProtocolError, StateError
from vflens.protocol.acts import MAX_ATTACKS, Receipt, Submission
from vflens.score.scored import Scored
from vflens.storage.metrics import Metrics, Name
from vflens.types import Array
from vflens.words import counted

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

MIN_ROWS = 50  # fewer rows could reveal one person's error; lab mode allows them
MAX_NAME = 64  # characters
_HUGE = 1e70
_MILESTONES = (1, 2, 5)


def scorable(values: Array) -> bool:
    """Whether all values and their squares are finite."""
    return bool((np.abs(values) < _HUGE).all())


def milestones(total: int) -> list[int]:
    """Numbers of rows that are scored up to ``total``: 50, 100, 200, 500, 1000, …, then ``total``."""
    steps = [m * 10**e for e in range(1, 9) for m in _MILESTONES]
    return [*(s for s in steps if MIN_ROWS <= s < total), total]


class ScoringService(ABC):
    """Scores submissions against data that its owner alone knows; a subclass holds the data.

    Args:
        party: the target's name.
        width: numbers per row of a guess.
        predicting: number of all prediction rows; outside lab mode their :func:`milestones` are scored.
        lab: the receipt contains the errors.
        metrics, log: the target's, which keep the errors.
        folder: the target's, which keeps what was scored.
        once: what was scored, where services share a folder.
    """

    def __init__(
        self,
        *,
        party: str,
        width: int,
        predicting: int,
        lab: bool,
        metrics: Metrics,
        log: FilteringBoundLogger,
        folder: Path,
        once: Scored | None = None,
    ) -> None:
        self._party, self._width, self._lab = party, width, lab
        self._milestones = milestones(predicting)  # numbers of prediction rows scored outside lab mode
        self._once = once or Scored(folder / "scored.json")
        self._metrics, self._log = metrics, log
        self._lock = threading.Lock()

    def score(self, submission: Submission, scored: Array, *, ended: bool = False) -> Receipt:
        """Keep the errors of every guess; answer with a receipt.

        Args:
            submission: the guesses.
            scored: the rows that may be scored, in order; the submission names the first n of them.
            ended: the run is over, perhaps early: any number of prediction rows is scored, no milestones.

        Raises:
            ProtocolError: rows, names or shapes that do not fit; outside lab mode fewer than 50 rows, or no
                milestone.
            StateError: other guesses of these rows were scored before; they would fill the target's disk.
        """
        self._check_rows(submission, scored, ended=ended)
        self._check_guesses(submission)
        with self._lock:
            is_first = ended or self._once.note(submission)
            errors = self.keep_errors(submission)  # of a repetition too: the figures may have been lost
            self._metrics.save()
        if is_first:  # repetitions would fill the disk
            labels = {"adversary": submission.sender, "scored_set": submission.scored_set}
            self._log.info("scored", **labels, rows=len(submission.rows), errors=dict(errors))
        return Receipt(len(submission.rows), len(submission.guesses), errors if self._lab else {})

    @abstractmethod
    def keep_errors(self, submission: Submission) -> Mapping[str, float]:
        """Add the figures of a checked submission to the metrics, blind ones too; return attack → error."""

    def adding(self, submission: Submission) -> Callable[..., None]:
        """Call ``metrics.add`` with the labels that all figures of ``submission`` share."""
        return partial(self._metrics.add, **self._shared(submission))

    def add_columns(self, metric: Name, values: Array, submission: Submission, attack: str = "") -> None:
        """See :meth:`vflens.storage.metrics.Metrics.add_columns`."""
        self._metrics.add_columns(metric, values, attack=attack, **self._shared(submission))

    def add_matrix(self, metric: Name, matrix: Array, submission: Submission) -> None:
        """See :meth:`vflens.storage.metrics.Metrics.add_matrix`."""
        self._metrics.add_matrix(metric, matrix, **self._shared(submission))

    def _shared(self, submission: Submission) -> dict[str, Any]:
        return {
            "target": self._party,
            "adversary": submission.sender,
            "scored_set": submission.metrics_of,
            "rows": len(submission.rows),
        }

    def _check_rows(self, submission: Submission, scored: Array, *, ended: bool) -> None:
        n = len(submission.rows)
        if n == 0 or not np.array_equal(submission.rows, scored[:n]):
            raise ProtocolError(
                f"submission of {n} {submission.scored_set} rows: it must name the first rows that were "
                "released, in that order"
            )
        if self._lab:
            return
        if n < MIN_ROWS:
            raise ProtocolError(
                f"submission of {counted(n, 'row')}: fewer than {MIN_ROWS} are scored in lab mode only, "
                "wait for more predictions"
            )
        due = [len(scored)]
        if submission.scored_set == "predict":
            due = [n] if ended else self._milestones
        if n not in due:
            raise ProtocolError(
                f"submission of {n} {submission.scored_set} rows: the first 50, 100, 200, 500, … are scored, "
                "and all of them at the end"
            )

    def _check_guesses(self, submission: Submission) -> None:
        n, d = len(submission.rows), self._width
        names = [guess.attack for guess in submission.guesses]
        if not 0 < len(names) <= MAX_ATTACKS or len(set(names)) < len(names):
            raise ProtocolError(
                f"submission of {counted(len(names), 'attack')}, {len(set(names))} of them distinct: from 1 "
                f"to {MAX_ATTACKS} are scored, each once"
            )
        for guess in submission.guesses:
            if not (guess.attack.isprintable() and 0 < len(guess.attack) <= MAX_NAME):
                raise ProtocolError(
                    f"attack {guess.attack[:MAX_NAME]!r} has a name of "
                    f"{counted(len(guess.attack), 'character')}: give 1 to {MAX_NAME} printable ones"
                )
            if guess.values.shape != (n, d) or len(guess.status) != n:
                raise ProtocolError(
                    f"attack {guess.attack!r} submitted values of shape {guess.values.shape}: ({n}, {d}) is "
                    "needed"
                )
            if not scorable(guess.values):
                raise ProtocolError(
                    f"attack {guess.attack!r} submitted NaN or infinite values: give a finite guess for "
                    "every cell"
                )


def disabled() -> StateError:
    """The refusal of a target that does not score."""
    return StateError(
        "scoring is switched off at the target (scoring.enabled = false): attacks run, their errors stay "
        "unknown"
    )
