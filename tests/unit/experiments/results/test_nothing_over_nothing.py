"""Where a blind guess is exact there is nothing to find: 0/0 is neither success nor failure, on no page."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from runfolder import PIXELS, scores, target, write_party

from vflens.experiments.results.record import RecordedRun, read_run
from vflens.experiments.results.verdict import result_table, to_json
from vflens.experiments.sweeps.sweep_page import SubjectRows

COLUMNS = [f"pixel_{r}_{c}" for r, c in PIXELS]
EXACT = [m | {"value": 0.0} if m["metric"] == "blind_mse" else m for m in scores({"shrunk_table": 0.0})]


def _of_equal_rows(home: Path, *, name: str = "passive") -> RecordedRun:
    """A released table whose rows are all alike: attack and blind guess are exact."""
    return target(home, [m | {"target": name} for m in EXACT])


def test_a_release_of_equal_rows_is_undefined_in_record_table_and_json(tmp_path: Path) -> None:
    run = _of_equal_rows(tmp_path)
    (found,) = run.results
    assert (found.mse, found.blind) == (0.0, 0.0)
    assert math.isnan(found.relative)
    assert not found.better
    facts = json.loads(json.dumps(to_json([run]), allow_nan=False))["runs"][0]
    assert facts["results"][0]["relative"] is None
    assert (facts["results"][0]["better_than_blind"], facts["largest_leaks"][0]["relative"]) == (False, 1.0)
    cells = {row[2]: row[3] for row in result_table([run])[1]}
    assert cells["shrunk_table"] == ".000 ± .002"  # without a share of nothing


def test_a_defined_error_stands_before_an_undefined_one(tmp_path: Path) -> None:
    """Two targets: of one all rows are alike."""
    _of_equal_rows(tmp_path)
    others = [m | {"target": "other"} for m in scores({"ls": 0.07})]
    write_party(tmp_path / "demo" / "other", "passive", metrics=others)
    assert [r.attack for r in read_run(tmp_path / "demo").results] == ["ls", "shrunk_table"]


def test_a_constant_column_leaks_nothing(tmp_path: Path) -> None:
    def blind(m: dict[str, Any]) -> dict[str, Any]:
        constant = m["metric"] == "column_blind_mse" and m["column"] == COLUMNS[0]
        return m | {"value": 0.0} if constant else m

    run = target(tmp_path, [blind(m) for m in scores({"rcc2": 0.0})])
    columns = {c.column: c.relative for c in run.columns(run.results[0])}
    assert math.isnan(columns[COLUMNS[0]])
    assert {columns[c] for c in COLUMNS[1:]} == {0.0}
    assert [leak.column for leak in run.leaking_columns("passive")] == COLUMNS[1:]


def test_a_sweep_adds_errors_over_seeds_before_it_divides() -> None:
    """All labels found in three seeds, one of which has rows of one class."""
    place = {"attack": "label_restoration", "defense": "none", "strength": 0.0}
    rows = [{**place, "seed": s, "label_accuracy": 1.0, "blind": b} for s, b in enumerate((1.0, 0.5, 0.6))]
    found = SubjectRows("labels", rows).pooled("label_restoration", ("none", 0.0))
    assert (found.mean, found.seeds, found.undefined) == (0.0, 2, 1)
