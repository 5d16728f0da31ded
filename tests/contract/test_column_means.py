"""Means of columns: every attack's distance from the truth, beside the best guess from what was granted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from laboratory import federation

from vflens.experiments.results.record import RecordedRun, read_run
from vflens.experiments.results.verdict import to_json
from vflens.types import Array

ROWS: dict[str, Any] = {"what": "auxiliary", "to": "active", "rows": 20}
PARAMETERS: dict[str, Any] = {"what": "parameters", "to": "active"}
ATTACKS = [{"name": "half_star"}, {"name": "property_guess", "populations": 20}]


def _run(home: Path, *grants: dict[str, Any]) -> tuple[RecordedRun, Array, Array]:
    """The record, the target's columns of prediction rows, and those of the rows that it granted."""
    local = federation(home, attacks=ATTACKS, disclose=[PARAMETERS, *grants])
    local.run()
    target = local.passive["passive"]
    truth, predicted = target.run.truth, target.run.federation.predict
    return read_run(home), truth[predicted], truth[target.granted_rows("active")]


def _estimated(home: Path, attack: str) -> Array:
    with np.load(home / "active" / "estimates" / f"passive.{attack}.npz") as kept:
        values: Array = kept["values"].clip(0, 1)
    return values


def test_the_distance_is_that_of_the_means_beside_the_best_guess(tmp_path: Path) -> None:
    run, truth, granted = _run(tmp_path, ROWS)
    found = [m for m in run.column_means if m.attack == "half_star"]
    assert {m.attack for m in run.column_means} == {"half_star"}  # guesses are no attacks
    distance = np.abs(_estimated(tmp_path, "half_star").mean(axis=0) - truth.mean(axis=0))
    np.testing.assert_allclose([m.value for m in found], distance, atol=1e-12)
    guesses = [granted, *(_estimated(tmp_path, guess) for guess in ("imputation", "property_guess"))]
    distances = [np.abs(guess.mean(axis=0) - truth.mean(axis=0)) for guess in guesses]
    best = min(distances, key=lambda d: float(d.mean()))
    np.testing.assert_allclose([m.blind for m in found], best, atol=1e-12)
    assert to_json([run])["runs"][0]["column_means"] == [
        {"attack": m.attack, "target": m.target, "scored_set": m.scored_set, "rows": m.rows}
        | {"column": m.subject, "error": m.value, "blind": m.blind}
        for m in run.column_means
    ]


def test_a_sentence_stands_where_means_are_asked_for(tmp_path: Path) -> None:
    attacks = [{"name": "half_star"}, {"name": "property_scores", "populations": 3}]
    local = federation(tmp_path, attacks=attacks, disclose=[PARAMETERS, ROWS])
    local.run()
    run = read_run(tmp_path)
    by_attack = {
        a: float(np.mean([m.value for m in run.column_means if m.attack == a]))
        for a in ("half_star", "property_scores")
    }
    name, error = min(by_attack.items(), key=lambda found: found[1])
    [text] = run.best_means
    assert text.startswith("means of the columns over 18 predict rows of passive, to within so much of their")
    assert f": {name} {error:.3f}, the best guess from what was granted " in text


@pytest.mark.parametrize("grants", [(), ({"what": "moments", "to": "active"},)], ids=["nothing", "moments"])
def test_without_rows_the_guess_is_one_half_or_the_granted_mean(
    tmp_path: Path, grants: tuple[dict[str, Any], ...]
) -> None:
    local = federation(tmp_path, attacks=[{"name": "half_star"}], disclose=[PARAMETERS, *grants])
    local.run()
    target = local.passive["passive"].run
    trained = target.truth[target.federation.train].mean(axis=0)
    guess = trained if grants else np.full(len(trained), 0.5)
    expected = np.abs(guess - target.truth[target.federation.predict].mean(axis=0))
    run = read_run(tmp_path)
    np.testing.assert_allclose([m.blind for m in run.column_means], expected, atol=1e-12)
    assert run.best_means == ()  # nobody asked for means
