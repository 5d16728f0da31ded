"""Worst cases beside the best blind guess, from made-up records."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from runfolder import metric, scores, target

from vflens.experiments.pages.report import render
from vflens.experiments.results.verdict import to_json
from vflens.numerics.measures.advantage import advantage

PLACE = {"target": "passive", "scored_set": "predict", "rows": 360}


def _metrics(constants: float, imputed: float | None) -> list[dict[str, object]]:
    found = {"lmmse": (0.8, 0.3, 0.25), **({} if imputed is None else {"imputation": (imputed, 0.1, 0.0)})}
    errors = {"lmmse": 0.02, **({} if imputed is None else {"imputation": 0.05})}
    return [
        *scores(errors),
        metric("blind_cells_found", constants, **PLACE),
        metric("blind_rows_found", 0.05, **PLACE),
        metric("blind_rows_unique", 1 / 360, **PLACE),
        *(metric("cells_found", cells, attack=a, **PLACE) for a, (cells, _, _) in found.items()),
        *(metric("rows_found", rows, attack=a, **PLACE) for a, (_, rows, _) in found.items()),
        *(metric("rows_unique", unique, attack=a, **PLACE) for a, (_, _, unique) in found.items()),
        *(metric("exposed_mse", 0.001, attack=a, **PLACE) for a in found),
    ]


@pytest.mark.parametrize(
    ("constants", "imputed", "control"), [(0.4, None, 0.4), (0.4, 0.6, 0.6), (0.7, 0.6, 0.7)]
)
def test_the_control_is_the_best_blind_guess(
    tmp_path: Path, constants: float, imputed: float | None, control: float
) -> None:
    run = target(tmp_path, _metrics(constants, imputed))
    (case,) = run.worst_cases
    assert (case.attack, case.cells, case.rows_found, case.unique) == ("lmmse", 0.8, 0.3, 0.25)
    assert case.control_cells == control
    assert case.control_rows == (0.05 if imputed is None else 0.1)
    assert case.advantage_cells == advantage(0.8, control, 360)
    assert case.control_unique == 1 / 360
    rows, alone = f"30.0 % of rows whole (a blind guess {100 * case.control_rows:.1f} %)", "25.0 % alone"
    assert (
        f"of cells (a blind guess {100 * control:.1f} %), {rows}, {alone} (a blind guess 0.3 %)" in case.words
    )
    facts = json.loads(json.dumps(to_json([run]), allow_nan=False))["runs"][0]["worst_cases"]
    assert facts[0]["advantage_cells"]["value"] == pytest.approx((0.8 - control) / (1 - control))
    assert case.words in render([run]).replace("&#39;", "'")


def test_a_control_that_is_always_right_leaves_the_advantage_undefined(tmp_path: Path) -> None:
    (case,) = target(tmp_path, _metrics(1.0, None)).worst_cases
    assert math.isnan(case.advantage_cells.value)
    assert case.words.endswith("advantage in cells undefined")


def test_imputation_that_singles_out_more_is_the_control(tmp_path: Path) -> None:
    metrics = [m for m in _metrics(0.4, 0.6) if (m["metric"], m["attack"]) != ("rows_unique", "imputation")]
    more = metric("rows_unique", 0.07, attack="imputation", **PLACE)
    (case,) = target(tmp_path, [*metrics, more]).worst_cases
    assert case.control_unique == 0.07


def test_an_older_run_has_no_worst_cases(tmp_path: Path) -> None:
    assert target(tmp_path / "a", scores({"lmmse": 0.02})).worst_cases == ()
    older = [m for m in _metrics(0.4, None) if m["metric"] != "blind_rows_unique"]
    assert target(tmp_path / "b", older).worst_cases == ()
