"""Weights that are withheld follow in a run from the scores of known people who come back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from laboratory import SYNTHETIC, federation

from vflens.clients.returning import again
from vflens.experiments.results.record import RecordedRun, read_runs


def ran(folder: Path, **data: Any) -> RecordedRun:
    settings: dict[str, Any] = {
        "data": {**SYNTHETIC, "rows": 300, **data},
        "predict_share": 0.5,
        "disclose": [
            {"what": "parameters", "to": "active"},
            {"what": "auxiliary", "to": "active", "rows": 40},
        ],
        "defenses": [{"name": "withhold_parameters", "at": "passive"}],
        "attacks": [{"name": "known_scores"}, {"name": "lmmse"}],
    }
    federation(folder, **settings).run()
    (run,) = read_runs([folder])
    return run


def test_known_people_who_come_back_give_the_withheld_weights(tmp_path: Path) -> None:
    run = ran(tmp_path, returning=120)
    (found,) = (r for r in run.results if r.attack == "known_scores")
    assert found.better
    assert found.relative < 0.9
    assert [s.attack for s in run.skipped] == ["lmmse"]  # the weights were withheld


def test_without_them_it_is_skipped(tmp_path: Path) -> None:
    run = ran(tmp_path)
    (skipped,) = (s for s in run.skipped if s.attack == "known_scores")
    assert "0 of the 40 rows granted" in skipped.reason


def test_each_row_has_the_place_at_which_its_person_comes_back() -> None:
    ids = np.array([b"c", b"a", b"b", b"again-b", b"d", b"again-c"])
    np.testing.assert_array_equal(again(ids), [5, 1, 3, 3, 4, 5])
    np.testing.assert_array_equal(again(ids[:3]), [0, 1, 2])
