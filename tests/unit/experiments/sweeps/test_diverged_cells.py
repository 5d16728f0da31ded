"""A federation whose numbers leave their range is a cell without figures: the others are computed."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from nonempty import nonempty

from vflens.experiments.sweeps.pool import Pool
from vflens.experiments.sweeps.sweep import refusals, run_cell
from vflens.experiments.sweeps.sweep_file import SweepFile, cells

SWEEP = {
    "name": "diverged",
    "data": {"name": "diabetes", "sample": 80},
    "split": {"kind": "fraction", "fraction": 0.5},
    "model": {"family": "linear_regression"},
    "training": {"epochs": 3, "batch_size": 20, "learning_rate": 0.01},
    "attacks": [{"name": "half"}],
    "disclose": [{"what": "parameters", "to": "active"}],
    "sweep": {"defenses": [{"at": "passive", "name": "withhold_parameters"}]},
}


def test_a_cell_that_diverges_says_so_and_ends_no_sweep(tmp_path: Path) -> None:
    wild = {"optimizer": "sgd", "epochs": 60, "batch_size": 20, "learning_rate": 1e4}
    calm, lost = (cells(SweepFile.model_validate(SWEEP | {"training": t})) for t in (SWEEP["training"], wild))
    found = Pool(tmp_path / "cells").run(partial(run_cell, scratch=str(tmp_path / "scratch")), [*lost, *calm])
    for rows in nonempty(found[: len(lost)]):
        (refusal,) = refusals(rows)
        assert " did not end: " in refusal
        assert "huge numbers in step" in refusal
    assert all(row["mse"] is not None for rows in nonempty(found[len(lost) :]) for row in rows)
