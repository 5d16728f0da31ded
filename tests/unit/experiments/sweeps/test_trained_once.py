"""Cells of a sweep that train the same bits train once, and each gives the rows that it gives alone."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from laboratory import SYNTHETIC
from thinned import first

from vflens.coordinator.vertical.coordinator import Coordinator
from vflens.experiments.sweeps import sweep as module
from vflens.experiments.sweeps.pool import Cell, Pool, Rows
from vflens.experiments.sweeps.sweep_file import SweepFile, cells

PARAMETER_GRANT = {"what": "parameters", "to": "active"}
NUMBER = {"name": "diabetes", "sample": 80}
SCORES = [
    {"at": "coordinator", "name": "round_scores", "vary": "digits", "values": [1, 3]},
    {"at": "coordinator", "name": "label_only"},
]
PARAMETERS = [{"at": "passive", "name": "withhold_parameters"}]
PREDICTED = [{"name": "half_star"}, {"name": "rcc2"}]
LATE: dict[str, dict[str, Any]] = {
    "scores and parameters": {"sweep": {"seeds": 2, "defenses": [*SCORES, *PARAMETERS]}},
    "a number": {
        "data": NUMBER,
        "model": {"family": "linear_regression"},
        "training": {"epochs": 3, "batch_size": 20, "learning_rate": 0.01},
        "attacks": [{"name": "half_star"}, {"name": "lmmse"}],
        "disclose": [PARAMETER_GRANT, {"what": "auxiliary", "to": "active", "rows": 20}],
        "sweep": {"seeds": 2, "defenses": PARAMETERS},
    },
    "a split network, stopped early": {
        "model": {"architecture": "mlp", "width": 4},
        "training": {"epochs": 6, "batch_size": 20, "patience": 1},
        "attacks": [{"name": "wmi", "steps": 5}],
        "disclose": [PARAMETER_GRANT, {"what": "auxiliary", "to": "active", "rows": 20}],
        "sweep": {"seeds": 2, "defenses": PARAMETERS},
    },
}


def sweep(**changes: Any) -> SweepFile:
    settings: dict[str, Any] = {
        "name": "late",
        "data": SYNTHETIC,
        "split": {"kind": "fraction", "fraction": 0.5},
        "training": {"epochs": 3, "batch_size": 20},
        "attacks": PREDICTED,
        "disclose": [PARAMETER_GRANT],
        "sweep": {"seeds": 2, "defenses": SCORES},
    }
    return SweepFile.model_validate(settings | changes)


def bits(found: Any) -> str:
    return json.dumps(found, sort_keys=True, default=str)


def trainings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Gets a number for each training of a coordinator."""
    found: list[int] = []
    train = Coordinator.train

    def counted(coordinator: Coordinator, *given: Any) -> None:
        found.append(len(found))
        train(coordinator, *given)

    monkeypatch.setattr(Coordinator, "train", counted)
    return found


def _scored(found: list[Rows]) -> set[str]:
    """The attacks that gave an error."""
    return {row["attack"] for rows in found for row in rows if row.get("mse") is not None}


def alone(cell: Cell, tmp_path: Path) -> Any:
    place, settings, _ = cell.arguments
    return module.run_cell(place, settings, scratch=str(tmp_path / "alone"))


@pytest.mark.parametrize("what", first(LATE))
def test_defences_after_training_share_one(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, trained = cells(sweep(**LATE[what])), trainings(monkeypatch)
    module._trained.cache_clear()
    work = partial(module.run_cell, scratch=str(tmp_path / "scratch"))
    found = Pool(tmp_path / "cells").run(work, wanted)
    assert len(trained) == 2  # the seeds
    assert {a["name"] for a in LATE[what].get("attacks", PREDICTED)} <= _scored(found)
    for cell, rows in zip(wanted, found, strict=True):
        assert bits(rows) == bits(alone(cell, tmp_path)), cell.key["place"]
    assert len(trained) == 2 + len(wanted)


def test_a_cell_that_comes_back_after_a_kill_trains_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, trained = cells(sweep()), trainings(monkeypatch)
    pool, work = Pool(tmp_path / "cells"), partial(module.run_cell, scratch=str(tmp_path / "scratch"))
    module._trained.cache_clear()
    found = pool.run(work, wanted)
    for cell in wanted[2:4]:
        (pool.folder / cell.file()).unlink()
    module._trained.cache_clear()  # another process
    assert bits(pool.run(work, wanted)[2:4]) == bits(found[2:4])
    assert len(trained) == 4


@pytest.mark.parametrize(
    ("changes", "groups"),
    [
        ({}, 2),
        ({"attacks": [*PREDICTED, {"name": "gradient_sign", "at": "passive"}]}, 0),
        ({"training": {"epochs": 3, "batch_size": 20, "protection": "shares", "optimizer": "sgd"}}, 0),
        ({"sweep": {"seeds": 2, "defenses": [{"at": "active", "name": "label_dp"}]}}, 2),
        ({"sweep": {"seeds": 2, "defenses": [{"at": "passive", "name": "release_table"}]}}, 2),
    ],
)
def test_who_reads_or_changes_training_trains(changes: dict[str, Any], groups: int) -> None:
    found = [(c.group, c.key["place"]["defense"]) for c in cells(sweep(**changes))]
    assert len({group for group, _ in found if group}) == groups
    assert all(not group for group, defense in found if defense in ("label_dp", "release_table"))


def test_another_table_is_another_training(tmp_path: Path) -> None:
    """Its bytes decide, not its name."""
    files: dict[str, dict[str, str]] = {
        p: {"file": str(tmp_path / f"{p}.csv")} for p in ("passive", "active")
    }
    files["active"]["label_column"] = "y"
    what, found = sweep(data=None, split=None, files=files), set[str]()
    for text in ("id,y,a\n1,0,1\n", "id,y,a\n1,0,2\n"):
        (tmp_path / "active.csv").write_text(text, encoding="utf-8")
        found |= {cell.group for cell in cells(what)}
    assert len(found) == 4  # two seeds of each
