"""Cells, rows and unique rows that are found: against loops over every pair."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from laboratory import figures

from vflens.array import ScaledColumns
from vflens.protocol.acts import Guess, Submission
from vflens.score.batches import BatchColumnScoring
from vflens.score.columns import ColumnScoring
from vflens.score.worst import Tolerance, most_exposed
from vflens.storage.log import party_log
from vflens.storage.metrics import Metrics
from vflens.types import ColumnInfo, numbered, statuses


def _case(seed: int) -> tuple[Tolerance, np.ndarray, np.ndarray]:
    """A number with a stated tolerance, one without, a finite column; answers near the truth."""
    rng = np.random.default_rng(seed)
    truth = np.column_stack([rng.random(80), rng.random(80), rng.integers(0, 3, 80) / 2])
    values = np.clip(truth + rng.normal(0, 0.08, truth.shape), 0, 1)
    return Tolerance.of(truth, {0: 0.1}, {2: np.array([0.0, 0.5, 1.0])}), truth, values


@pytest.mark.parametrize("seed", range(5))
def test_found_and_unique_are_those_of_every_pair(seed: int) -> None:
    tolerance, truth, values = _case(seed)
    widths, cells, rows, unique = (0.1, 0.05, 0.25 * (1 - 1e-9)), 0, [], 0
    for answer, own in zip(values, truth, strict=True):
        near = [abs(a - x) <= w for a, x, w in zip(answer, own, widths, strict=True)]
        cells += sum(near)
        rows.append(all(near))
        others = [all(abs(a - x) <= w for a, x, w in zip(answer, row, widths, strict=True)) for row in truth]
        unique += all(near) and sum(others) == 1
    found = tolerance.found(values, truth)
    assert found.sum() == cells
    np.testing.assert_array_equal(found.all(axis=1), rows)
    assert 0 < unique < sum(rows) < 80
    assert tolerance.unique(values, np.array(rows), truth) == pytest.approx(unique / 80)


def test_two_rows_that_are_alike_are_found_and_not_unique() -> None:
    truth = np.array([[0.5, 0.5], [0.5, 0.5], [0.9, 0.1]])
    tolerance = Tolerance.of(truth, {}, {})
    assert tolerance.unique(truth, np.ones(3, bool), truth) == pytest.approx(1 / 3)
    assert tolerance.unique(truth, np.zeros(3, bool), truth) == 0.0


def test_a_constant_singles_out_one_row_at_most(tmp_path: Path) -> None:
    """It finds a crowd of equal rows, none of them alone. Where all rows differ it finds none: constants are
    fitted to rows that they are not scored on.
    """
    crowd = np.concatenate([np.full(12, 0.5), np.linspace(0, 0.4, N - 12)])[:, np.newaxis]
    apart = np.linspace(0, 1, N)[:, np.newaxis]
    found = {}
    for name, truth in {"crowd": crowd, "apart": apart}.items():
        (tmp_path / name).mkdir()
        figures_of = _scored(tmp_path / name, truth, {"c0": 0.001})
        kinds = ("blind_rows_found", ""), ("blind_rows_unique", ""), ("rows_unique", "a")
        found[name] = [round(N * figures_of[kind]) for kind in kinds]
    assert found == {"crowd": [12, 0, N - 12], "apart": [0, 0, N]}


def test_a_constant_is_not_fitted_to_the_rows_that_it_is_scored_on() -> None:
    """Any constant finds a tenth of even rows; one that is fitted to them seems to find more."""
    rng = np.random.default_rng(0)
    tolerance = Tolerance.of(np.zeros((1, 1)), {0: 0.05}, {})
    fitted, apart = [], []
    for _ in range(200):
        truth = rng.random((20, 1))
        best = np.broadcast_to(tolerance.best_constant(truth), truth.shape)
        fitted.append(tolerance.found(best, truth).mean())
        apart.append(tolerance.found(tolerance.constants(truth), truth).mean())
    assert np.mean(apart) == pytest.approx(0.1, abs=0.01)
    assert np.mean(fitted) > 0.2
    assert tolerance.constants(np.full((1, 1), 0.3)).tolist() == [[0.3]]


@pytest.mark.parametrize("seed", range(4))
def test_no_constant_finds_more_cells(seed: int) -> None:
    """999 stands for "never" in most rows: means and halves find none of them."""
    rng = np.random.default_rng(seed)
    truth = np.where(rng.random((200, 1)) < 0.7, 1.0, rng.random((200, 1)))
    tolerance = Tolerance.of(truth, {}, {})
    best = tolerance.found(np.broadcast_to(tolerance.best_constant(truth), truth.shape), truth).mean()
    tried = max(float((np.abs(truth - c) <= 0.05).mean()) for c in np.linspace(0, 1, 4001))
    assert best >= tried
    assert best > 0.6


def test_the_most_exposed_are_those_of_least_error() -> None:
    errors = np.random.default_rng(0).random(260)
    np.testing.assert_array_equal(most_exposed(errors), np.argsort(errors)[:3])
    assert len(most_exposed(errors[:20])) == 1


N = 60
TRUTH = np.random.default_rng(0).random((200, 1))
RELEASED = np.arange(N, dtype=np.int32)


def _scored(
    home: Path,
    truth: np.ndarray,
    tolerance: dict[str, float],
    unit: float = 1.0,
    values: np.ndarray | None = None,
) -> dict[tuple[str, str], float]:
    """The target's figures of ``values``, by default the truth, for the first 60 rows."""
    names = [f"c{j}" for j in range(truth.shape[1])]
    service = ColumnScoring(
        party="target",
        truth=ScaledColumns(truth, units=np.full(len(names), unit)),
        columns=tuple(ColumnInfo(name, 0.0, unit) for name in names),
        training=np.arange(N // 2, N, dtype=np.int32),
        predicting=N,
        lab=False,
        metrics=Metrics(home / "metrics.parquet"),
        log=party_log(home / "events.jsonl", "target"),
        folder=home,
        pictures=0,
        tolerance=tolerance,
    )
    guess = Guess("a", truth[RELEASED] if values is None else values, numbered(statuses(N)))
    service.score(Submission("run", "active", "predict", RELEASED, guesses=(guess,)), RELEASED)
    return {(m, a): v for (m, a, _), v in figures(home).items()}


def test_a_tolerance_is_in_the_columns_own_unit(tmp_path: Path) -> None:
    """Income to within ± 100 of a range of 1,000: a tenth of the scaled column."""
    values = np.clip(TRUTH[RELEASED] + np.repeat([[0.09], [0.11]], N // 2, axis=0), 0, 1)
    found = _scored(tmp_path, TRUTH, {"c0": 100.0}, 1000.0, values)
    near = np.abs(values - TRUTH[RELEASED]) <= 0.1
    assert found["cells_found", "a"] == pytest.approx(near.mean())
    assert found["column_tolerance", ""] == pytest.approx(100.0)


def test_a_rounds_rows_are_found_in_any_order(tmp_path: Path) -> None:
    """Three of four rows, each within the tolerance, in another order; constants are those of all rows."""
    rng = np.random.default_rng(3)
    truth = np.where(rng.random((50, 3)) < 0.6, 0.25, rng.random((50, 3)))
    truth[[4, 9, 20, 31]] = [[0.1, 0.25, 0.9], [0.9, 0.25, 0.1], [0.5, 0.5, 0.5], [0.9, 0.9, 0.9]]
    service = BatchColumnScoring(
        party="target",
        truth=ScaledColumns(truth),
        columns=tuple(ColumnInfo(f"c{j}", 0.0, 1.0) for j in range(3)),
        training=np.arange(50, dtype=np.int32),
        rows_of=lambda number: np.array([4, 9, 20, 31], np.int32),
        predicting=0,
        lab=True,
        metrics=Metrics(tmp_path / "metrics.parquet"),
        log=party_log(tmp_path / "events.jsonl", "target"),
        folder=tmp_path,
        pictures=0,
    )
    batch = truth[[4, 9, 20, 31]]
    values = (batch + 0.04 * np.array([1, -1, 1]))[[2, 0, 3, 1]]
    values[0, 1] += 0.2  # one cell of one row is far
    guess, places = Guess("a", values, numbered(statuses(4))), np.arange(4, dtype=np.int32)
    submission = Submission("run", "server", "train", places, guesses=(guess,), estimates="features", step=7)
    service.score(submission, places)
    found = {(m, a): v for (m, a, _), v in figures(tmp_path).items()}
    assert (found["cells_found", "a"], found["rows_found", "a"]) == (11 / 12, 0.75)
    assert found["rows_unique", "a"] == 0.75
    assert found["blind_cells_found", ""] == pytest.approx(2 / 12)  # the frequent .25 of the second column
