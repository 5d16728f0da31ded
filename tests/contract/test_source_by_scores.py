"""Which client a predicted row is from, to whoever gets scores: in whole runs, beside permuted clients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from horizontal import CLASSES, deal, federation

from vflens.experiments.evidence.matrix import rows
from vflens.experiments.evidence.measured import measured
from vflens.experiments.outcome.decide import State
from vflens.experiments.outcome.finding import Finding, Quantity
from vflens.experiments.results.labels_membership import sites_told
from vflens.experiments.results.record import RecordedRun, read_runs
from vflens.experiments.results.verdict import verdict
from vflens.tables.table import Table
from vflens.types import Array, ColumnInfo

GRANTS = [
    {"what": "auxiliary", "to": "server", "rows": 60},
    {"what": "candidates", "to": "server", "rows": 160},
]


def table(seed: int, shift: float = 0.0, rates: Array | None = None) -> Table:
    """Labels follow from the first column, which lies by ``shift`` higher at some clients."""
    rng, n = np.random.default_rng(seed), 300
    labels = rng.choice(len(CLASSES), n, p=rates)
    features = rng.random((n, 3))
    features[:, 0] = 0.2 * labels + shift + 0.3 * features[:, 0]
    columns = tuple(ColumnInfo(f"c{j}", 0.0, 2.0) for j in range(3))
    ids = np.array([f"{seed}-{i}".encode() for i in range(n)])
    split = (np.arange(n) >= 180).astype(np.uint8)
    return Table(ids, columns, features, labels, class_names=CLASSES, split=split)


def ran(folder: Path, tables: dict[str, Table], **changes: Any) -> RecordedRun:
    settings: dict[str, Any] = {
        "training": {"batch_size": 30, "learning_rate": 0.1, "l2": 0.0},
        "horizontal": {"rounds": 5, "local_epochs": 5},
        "attacks": [{"name": "source_by_scores"}],
        "disclose": GRANTS,
    }
    federation(deal(folder, tables, **{**settings, **changes})).run()
    (run,) = read_runs([folder])
    return run


def judged(run: RecordedRun) -> Finding:
    (found,) = run.findings.only(Quantity.SITES)
    return found


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> RecordedRun:
    tables = {"a": table(1), "b": table(2, 0.3), "c": table(3, 0.6)}
    return ran(tmp_path_factory.mktemp("planted"), tables)


def test_clients_whose_people_differ_are_told_apart(planted: RecordedRun) -> None:
    found = judged(planted)
    assert found.state is State.FOUND
    assert found.value > 0.5
    assert (found.rows, found.scored_set, found.adversary) == (240, "predict", "whoever gets predictions")
    assert found.blind < 0.4


def test_a_verdict_names_rows_that_are_predicted_and_how_rare_it_is_by_chance(planted: RecordedRun) -> None:
    words = str(verdict([planted]))
    assert "Which client a prediction row is from: found, source_by_scores names the client of" in words
    assert "with the clients permuted within each class: p < .001." in words
    assert "training row is from" not in words


def test_a_dpia_says_it_of_whoever_gets_predictions(planted: RecordedRun) -> None:
    head, body = rows(list(measured([planted.findings])))
    (line,) = (line for line in body if line[0] == "which site a case is from")
    (place,) = (i for i, who in enumerate(head) if who.startswith("whoever gets predictions"))
    assert line[place].startswith("found (")


@pytest.mark.parametrize("rates", [None, [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]])
def test_clients_whose_people_are_alike_in_each_class_are_not(tmp_path: Path, rates: Any) -> None:
    """What the class alone tells is no finding: other rates of it betray nothing beyond."""
    tables = {n: table(7 + i, rates=None if rates is None else rates[i]) for i, n in enumerate("abc")}
    found = judged(ran(tmp_path, tables))
    assert found.state is not State.FOUND
    assert found.rows_needed > found.rows
    (words,) = sites_told([found])
    assert "not decided" in words
    assert "would decide" in words


def test_it_reads_no_update(tmp_path: Path) -> None:
    """So masks do not hide it."""
    tables = {"a": table(1), "b": table(2, 0.3), "c": table(3, 0.6)}
    secure = {"rounds": 5, "local_epochs": 5, "secure_aggregation": True}
    found = judged(ran(tmp_path, tables, horizontal=secure, secure_aggregation=True))
    assert found.state is State.FOUND


def test_without_known_rows_of_each_client_it_is_skipped(tmp_path: Path) -> None:
    tables = {"a": table(1), "b": table(2, 0.15)}
    run = ran(tmp_path, tables, disclose=GRANTS[1:])
    assert not run.findings.only(Quantity.SITES)
    assert any("never disclosed its auxiliary" in s.reason for s in run.skipped)
