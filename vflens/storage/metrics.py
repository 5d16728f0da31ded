"""Numbers of a run, one row each, in ``metrics.parquet``; rewritten whole: no reader sees half a file."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Sequence
from enum import StrEnum
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from vflens.errors import StorageError
from vflens.storage.arrow import numbers, parquet_table, strings
from vflens.storage.files import write_whole
from vflens.storage.json_file import in_words
from vflens.types import Array
from vflens.words import counted

if TYPE_CHECKING:
    import pyarrow as pa

#: Rows of the largest matrix in the metrics, which keep a figure for each pair.
MOST_ROWS = 64
_TEXTS = ("attack", "adversary", "target", "scored_set", "column", "detail")
_KEY = ("metric", *_TEXTS, "rows", "step")
_LATER = {"detail", "values"}  # which the files of earlier releases lack


class Name(StrEnum):
    """What a row measures; ``meaning`` says it in a line."""

    meaning: str

    def __new__(cls, value: str, meaning: str) -> Self:
        """The name ``value`` with its meaning."""
        name = str.__new__(cls, value)
        name._value_, name.meaning = value, meaning
        return name

    STEPS = "steps", "training steps of the run"
    ROUNDS = "rounds", "rounds in which the client took part"
    TRAIN_SECONDS = "train_seconds", "seconds of training since the last start"
    STEPS_PER_SECOND = "steps_per_second", "training steps in a second"
    TRAIN_LOSS = "train_loss", "mean loss of an epoch, by `step`"
    PREDICT_ROWS = "predict_rows", "rows of which scores were released"
    PREDICT_SECONDS = "predict_seconds", "seconds of the predictions"
    BYTES_RECEIVED = "bytes_received", "bytes of the messages that the leader received"

    ACCURACY = "accuracy", "share of prediction rows with the right class"
    ACCURACY_ALONE = "accuracy_alone", "the same by a model of the party's own data alone"
    ACCURACY_RELEASED = "accuracy_released", "the same by a model of its own columns and released tables"
    ACCURACY_CLEAR = "accuracy_clear", "the same of a protected run trained in the clear, in lab mode"
    AUC = "auc", "area under the ROC curve on the prediction rows"
    AUC_ALONE = "auc_alone", "the same by a model of the party's own data alone"
    AUC_RELEASED = "auc_released", "the same by a model of its own columns and released tables"
    AUC_CLEAR = "auc_clear", "the same of a protected run trained in the clear, in lab mode"
    R2 = "r2", "R² of the predicted number on the prediction rows"
    R2_ALONE = "r2_alone", "the same by a model of the party's own data alone"
    R2_RELEASED = "r2_released", "the same by a model of its own columns and released tables"
    R2_CLEAR = "r2_clear", "the same of a protected run trained in the clear, in lab mode"
    RMSE = "rmse", "root of its mean squared error there, in the unit of the label"
    RMSE_STDERR = "rmse_stderr", "standard error of `rmse` over these rows"
    RMSE_ALONE = "rmse_alone", "the same by a model of the party's own data alone"
    RMSE_RELEASED = "rmse_released", "the same by a model of its own columns and released tables"
    RMSE_CLEAR = "rmse_clear", "the same of a protected run trained in the clear, in lab mode"
    MEAN_KL = "mean_kl", "mean Kullback–Leibler divergence of released from exact scores, in nats"
    LARGEST_LOGIT = "largest_logit", "largest absolute logit of a prediction row, in protected training"
    ARGMAX_KEPT = "argmax_kept", "share of rows whose class of the largest score the release kept"

    MSE = "mse", "mean squared error of an attack, its answer moved into [0, 1] as the columns are"
    MSE_STDERR = "mse_stderr", "standard error of `mse` over rows"
    BLIND_MSE = "blind_mse", "`mse` of the blind guess that `attack` names"
    MATCHED_MSE = "matched_mse", "mean squared error of rows in no order, assigned with the least error"
    BLIND_MATCHED_MSE = "blind_matched_mse", "`matched_mse` of the blind guess that `attack` names"
    UNUSABLE = "unusable", "share of rows that the attack flagged as not solved"
    AFFINE_R2 = "affine_r2", "R² on training rows after the best affine map of the estimate"
    AFFINE_MSE = "affine_mse", "mean squared error after that map"
    PSNR = "psnr", "peak signal-to-noise ratio of images, in dB"
    BLIND_PSNR = "blind_psnr", "`psnr` of the blind guess that `attack` names"
    SSIM = "ssim", "structural similarity, a mean over images"
    BLIND_SSIM = "blind_ssim", "`ssim` of the blind guess that `attack` names"

    COLUMN_MSE = "column_mse", "mean squared error of a column; of pixels all in `values`"
    COLUMN_BLIND_MSE = "column_blind_mse", "that of the column's best blind guess; of pixels all in `values`"
    COLUMN_MSE_STDERR = "column_mse_stderr", "standard error of `column_mse` over rows; none of pixels"
    COLUMN_MEAN_ERROR = (
        "column_mean_error",
        "distance of the mean of the answers from the column's own",
    )
    COLUMN_BLIND_MEAN_ERROR = "column_blind_mean_error", "that of the mean of what was granted, or of ½"
    COLUMN_UNIT = "column_unit", "what 1 of the scaled column stands for in the column's own unit"
    COLUMN_ENTROPY = "column_entropy", "entropy H(X) of a column with an alphabet, in bits"
    COLUMN_CONDITIONAL_ENTROPY = "column_conditional_entropy", "entropy of it given the estimate, in bits"
    COLUMN_RIGHT = "column_right", "share of rows in which the value nearest to the estimate is theirs"
    COLUMN_BLIND_RIGHT = "column_blind_right", "share of the column's most frequent value"
    COLUMN_MATCH = "column_match", "share of rows that a two-valued column of the estimate splits rightly"
    COLUMN_BLIND_MATCH = "column_blind_match", "share of the more frequent of a column's two values"

    COLUMN_FOUND = "column_found", "share of rows of which the column's cell is within its tolerance"
    COLUMN_BLIND_FOUND = "column_blind_found", "`column_found` of the constant that finds most"
    CELLS_FOUND = "cells_found", "share of cells within the tolerance of their column"
    ROWS_FOUND = "rows_found", "share of rows of which all cells are"
    ROWS_UNIQUE = "rows_unique", "share of rows found whose answer fits no second row of the table"
    BLIND_CELLS_FOUND = "blind_cells_found", "`cells_found` of the constants that find most"
    BLIND_ROWS_FOUND = "blind_rows_found", "`rows_found` of these constants"
    BLIND_ROWS_UNIQUE = "blind_rows_unique", "`rows_unique` of these constants"
    COLUMN_TOLERANCE = "column_tolerance", "the column's tolerance, in its own unit"
    EXPOSED_MSE = "exposed_mse", "`mse` of the 1 % of rows, one at least, of least error"
    LABEL_ACCURACY = "label_accuracy", "share of labels that an attack found"
    LABEL_AUC = "label_auc", "area under the ROC curve of its guesses; NaN if the rows are of one class"
    BLIND_LABEL_ACCURACY = "blind_label_accuracy", "share of the most frequent class of training rows"
    MATCHED_LABEL_ACCURACY = "matched_label_accuracy", "share of a round's labels found, in any order"
    BLIND_MATCHED_LABEL_ACCURACY = "blind_matched_label_accuracy", "share of that class in the round"
    LABELS_ANEW = "labels_anew", "share it finds of labels dealt anew, of what a guess leaves open"
    MEMBERSHIP_AUC = "membership_auc", "area under the ROC curve of training rows against other rows"
    MEMBERSHIP_TPR = (
        "membership_tpr",
        "share of training rows found where the share `detail` of others is taken",
    )
    BLIND_MEMBERSHIP_AUC = "blind_membership_auc", "`membership_auc` of a guess: ½"
    SOURCE_RIGHT = "source_right", "share of a client's training rows that are named as its own"
    SOURCE_RIGHT_OTHERS = "source_right_others", "the same of its rows that nobody trained on"
    SOURCE_NAMED = (
        "source_named",
        "such rows of class `detail`; how many each client is named for, in `values`",
    )
    BLIND_SOURCE_RIGHT = "blind_source_right", "`source_right` of a guess, on average over K clients: 1/K"

    GRANTED = "granted", "1: the attack read what no round sends; `detail` names it"
    ON_GRANTS_ONLY = "on_grants_only", "1: the defence `detail` of `target` acted on nothing else"
    SKIPPED = "skipped", "1: the attack lacked knowledge; `detail` says which"
    FAILED = "failed", "1: the attack raised an error or gave no estimate; `detail` says why"

    THEORY_ROWS = "theory_rows", "rows with complete equations, on which the figures of theory are"
    THEORY_MEASURED = "theory_measured", "`mse` on these rows; `detail` names the statement on it"
    THEORY_CLOSED = "theory_closed", "closed form of that error"
    THEORY_LOWER = "theory_lower", "lower bound of every model of full rank"
    THEORY_UPPER = "theory_upper", "upper bound, the only figure on clipped estimates"
    THEORY_ANY_CENTER = "theory_any_center", "lower bound Tr((I − P) K_μ)/d of any fixed point"
    THEORY_MIRRORED = "theory_mirrored", "closed form of a black box that takes 1 − x for x"
    THEORY_DISORDER = "theory_disorder", "rows that break Theorem 1"
    THEORY_NOISE_WEIGHT = "theory_noise_weight", "matrix B: noise of second moment S on logits adds Tr(B S)"
    SCORE_NOISE = "score_noise", "second moments of the noise on released logits, a matrix"
    GUESSED_SCORES_ERROR = "guessed_scores_error", "second moments of the error of guessed logits, a matrix"

    TRAINING_RELEASES = "training_releases", "the most releases of a training row; at a client its updates"
    TRAINING_EPSILON = "training_epsilon", "total ε at `limits.delta`; at a client of all its rows together"
    PREDICTION_RELEASES = "prediction_releases", "releases of a prediction row: 1"
    PREDICTION_EPSILON = "prediction_epsilon", "their total ε"
    LABEL_RELEASES = "label_releases", "releases of a row's label under `grad_perturb`"
    LABEL_EPSILON = "label_epsilon", "their total ε"
    RELEASED_BOUND = "released_bound", "least error per cell that the released table's noise claims"
    RELEASED_LINEAR = "released_linear", "least error per cell that it claims of linear attacks"
    HIJACK_SCORE = "hijack_score", "what a detector found in the gradient of a `step`; `detail` names it"
    HIJACK_ALARM = "hijack_alarm", "`hijack_score` at which the detector raised an alarm; `detail` names it"


#: Of these, files without details have theirs in ``column``.
_DETAILED = {
    *(Name.SKIPPED, Name.FAILED, Name.GRANTED, Name.THEORY_MEASURED),
    *(Name.MEMBERSHIP_TPR, Name.HIJACK_SCORE, Name.HIJACK_ALARM),
}
_MATRICES = {Name.THEORY_NOISE_WEIGHT, Name.SCORE_NOISE, Name.GUESSED_SCORES_ERROR}


class Metrics:
    """A party's metrics, added to those in ``file``: metric, value (float64) and the labels attack, adversary
    (its party), target, scored_set, column, detail (a reason, a statement, a detector: see :class:`Name`),
    rows, step. ``values`` has a figure for each of the target's columns where they are pixels, or the upper
    triangle of a matrix: ``value`` is then their mean; or counts, of which ``value`` is the sum.

    A figure with the metric and the labels of an earlier one takes its place: after a restart a party repeats
    what it had not finished.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._rows: list[dict[str, Any]] = []
        self._places: dict[tuple[Any, ...], int] = {}
        self._lock = threading.Lock()
        self._saved = False
        for row in _read(file) if file.exists() else []:
            self._put(row)

    def add(
        self,
        metric: Name,
        value: float,
        *,
        attack: str = "",
        adversary: str = "",
        target: str = "",
        scored_set: str = "",
        column: str = "",
        detail: str = "",
        rows: int = 0,
        step: int = 0,
        values: Sequence[float] = (),
    ) -> None:
        """Add one number, in memory; it replaces an earlier one with the same labels."""
        row = {"metric": metric, "value": float(value), "attack": attack, "adversary": adversary}
        row |= {"target": target, "scored_set": scored_set, "column": column, "detail": detail}
        row |= {"rows": rows, "step": step, "values": values}
        with self._lock:
            self._put(row)

    def _put(self, row: dict[str, Any]) -> None:
        place = self._places.setdefault(tuple(row[name] for name in _KEY), len(self._rows))
        self._rows[place : place + 1] = [row]
        self._saved = False

    def add_columns(self, metric: Name, values: Array, **labels: Any) -> None:
        """Add the figures ``values`` (d,), such as one of each of the target's columns, as one row."""
        self.add(metric, float(values.mean()), values=values.tolist(), **labels)

    def add_matrix(self, metric: Name, matrix: Array, **labels: Any) -> None:
        """Add a symmetric ``matrix`` (k, k) as one row: its upper triangle; none with over 64 rows."""
        if len(matrix) <= MOST_ROWS:
            self.add_columns(metric, matrix[np.triu_indices(len(matrix))], **labels)

    def last(self, metric: Name) -> float | None:
        """The last figure called ``metric``, or None."""
        with self._lock:
            return next((r["value"] for r in reversed(self._rows) if r["metric"] == metric), None)

    def save(self) -> None:
        """Write all figures, unless the file has them.

        Raises:
            StorageError: the file cannot be written; an earlier one stays.
        """
        import pyarrow.parquet as pq

        with self._lock:
            if self._saved:
                return
            pq.write_table(_table(self._rows), written := BytesIO())
            write_whole(self._file, written.getvalue(), remedy="another `out`; earlier results are kept")
            self._saved = True


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    import pyarrow as pa

    columns = {
        "metric": strings([row["metric"] for row in rows]),
        "value": numbers(np.array([row["value"] for row in rows], np.float64)),
    }
    for name in _TEXTS:
        columns[name] = strings([row[name] for row in rows])
    for name in ("rows", "step"):
        columns[name] = numbers(np.array([row[name] for row in rows], np.int64))
    ends = np.cumsum([0, *(len(row["values"]) for row in rows)]).astype(np.int32)
    joined = np.concatenate([np.zeros(0), *(row["values"] for row in rows if row["values"])])
    columns["values"] = pa.ListArray.from_arrays(numbers(ends), numbers(joined))
    return pa.table(columns)


def metric_rows(file: Path, *, limited: bool = False) -> list[dict[str, Any]]:
    """The rows of a ``file`` of metrics, an older one's in today's form; ``limited``: see
    :func:`vflens.storage.arrow.parquet_table`.

    Raises:
        OSError, ValueError: it cannot be read, or its columns are not those of metrics.
    """
    found = _of_metrics(parquet_table(file, limited=limited))
    rows: list[dict[str, Any]] = [{"values": [], **row} for row in found.to_pylist()]
    return rows if "detail" in found.column_names else _renewed(rows)


def _of_metrics(table: pa.Table) -> pa.Table:
    """``table`` with the columns of metrics, each of its kind and without gaps; an older one has fewer."""
    import pyarrow as pa

    kinds = {
        f.name: f.type for f in _table([]).schema if f.name in table.column_names or f.name not in _LATER
    }
    return pa.table({name: _of_kind(table, name, kind) for name, kind in kinds.items()})


def _of_kind(table: pa.Table, name: str, kind: pa.DataType) -> pa.ChunkedArray:
    import pyarrow as pa

    if name not in table.column_names:
        raise ValueError(f"it lacks {name!r}")
    try:
        column = table[name].cast(kind)
    except pa.ArrowException:
        raise ValueError(f"{name}: give {kind} (got {table[name].type})") from None
    figures = [chunk.flatten() for chunk in column.chunks] if pa.types.is_list(kind) else []
    if any(cells.null_count for cells in (column, *figures)):
        raise ValueError(f"{name} is missing in a row")
    return column


def _renewed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """``rows`` without details: some have theirs in ``column``, a matrix has a row for each cell "i,j".

    Raises:
        ValueError: a cell is no "i,j".
    """
    renewed: list[dict[str, Any]] = []
    cells: dict[tuple[Any, ...], tuple[dict[str, Any], dict[tuple[int, int], float]]] = {}
    for row in rows:
        if row["metric"] in _MATRICES:
            place = tuple(v for k, v in row.items() if k not in ("value", "column", "values"))
            cells.setdefault(place, (row, {}))[1][_cell(row)] = row["value"]
        elif row["metric"] in _DETAILED:
            renewed.append({**row, "column": "", "detail": row["column"]})
        else:
            renewed.append({**row, "detail": ""})
    for row, of in cells.values():
        values = [of[cell] for cell in sorted(of)]
        renewed.append({**row, "value": float(np.mean(values)), "column": "", "detail": "", "values": values})
    return renewed


def _cell(row: dict[str, Any]) -> tuple[int, int]:
    """The place in a matrix that ``row`` of an older file is a figure of."""
    found = re.fullmatch("([0-9]{1,4}),([0-9]{1,4})", str(row["column"]))
    if found is None:
        raise ValueError(f"column: 'i,j' of a cell of {row['metric']} is due (got {row['column']!r})")
    return int(found[1]), int(found[2])


def symmetric(triangle: Sequence[float]) -> Array:
    """The symmetric matrix (k, k) whose upper triangle, row by row, is ``triangle`` (k(k + 1)/2,).

    Raises:
        ValueError: there is no such k, or a number is not finite.
    """
    k = (math.isqrt(8 * len(triangle) + 1) - 1) // 2
    if not triangle or k * (k + 1) // 2 != len(triangle):
        raise ValueError(f"{counted(len(triangle), 'number is', many='numbers are')} no upper triangle")
    if not np.isfinite(triangle).all():
        raise ValueError("a number is not finite")
    M, upper = np.zeros((k, k)), np.triu_indices(k)
    M[upper] = M.T[upper] = triangle
    return M


def _read(file: Path) -> list[dict[str, Any]]:
    try:
        return metric_rows(file)
    except (OSError, ValueError) as error:
        raise StorageError(f"{file} is no readable metrics file ({in_words(error)}): move it away") from error
