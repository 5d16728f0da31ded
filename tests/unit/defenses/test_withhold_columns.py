"""A withheld column reaches nobody through the model, and errors are measured on it all the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from thinned import first

from vflens.array import ScaledColumns
from vflens.defenses.withhold_columns import WithholdColumns
from vflens.errors import ConfigError
from vflens.experiments.results.record import read_runs
from vflens.experiments.results.results import column_errors, final
from vflens.experiments.run.loading import load_any
from vflens.experiments.run.run import run
from vflens.types import Array, Owner

EXAMPLES = Path(__file__).parents[3] / "examples"


def _ran(folder: Path, *, scale: float, columns: list[str | int]) -> Path:
    """A run of the example on own tables, with ``scale`` times the incomes, and ``columns`` withheld."""
    folder.mkdir()
    table = pd.read_csv(EXAMPLES / "bank_passive.csv")
    table["income"] = (scale * table["income"]).round(1)
    table.to_csv(folder / "passive.csv", index=False)
    experiment = load_any(EXAMPLES / "own_csv.toml")
    settings = experiment.model_dump()
    settings["files"]["passive"]["file"] = folder / "passive.csv"
    withheld = {"at": "passive", "name": "withhold_columns", "columns": columns}
    scenarios = [{"name": "withheld", "defenses": [withheld] if columns else []}]
    made = type(experiment).model_validate({**settings, "out": folder / "runs", "scenarios": scenarios})
    return run(made, in_process=True).scenarios[0]


def _estimate(folder: Path) -> Array:
    with np.load(folder / "active/estimates/passive.half_star.npz") as found:
        values: Array = found["values"]
    return values


@pytest.mark.parametrize(("columns", "same"), first([(["income"], True), ([], False), ([1], True)], 2))
def test_the_adversary_sees_the_same_whatever_stands_in_it(
    tmp_path: Path, columns: list[str | int], same: bool
) -> None:
    """From scores and parameters half_star finds the same columns; without the defence others."""
    one, other = (_estimate(_ran(tmp_path / f"{s}", scale=s, columns=columns)) for s in (1.0, 0.5))
    assert np.array_equal(one, other) == same


def test_errors_are_measured_on_a_withheld_column(tmp_path: Path) -> None:
    (found,) = read_runs([_ran(tmp_path / "run", scale=1.0, columns=["income", "job=student"])])
    (result,) = (r for r in final(found) if r.attack == "half_star")
    errors = {e.column: e.mse for e in column_errors(found, result)}
    assert {"income", "job=student"} <= errors.keys()
    assert errors["income"] > 0


def test_only_the_named_columns_are_emptied() -> None:
    x = np.random.default_rng(0).random((4, 3))
    owner = Owner("party", ScaledColumns(x), names=("a", "b", "c"))
    defense = WithholdColumns(columns=("c", 0))
    state = defense.fit(owner, np.random.default_rng(0))
    np.testing.assert_array_equal(state["places"], [2, 0])


@pytest.mark.parametrize("column", ["d", 3, -1, ""])
def test_a_column_that_is_not_there_is_refused(column: str | int) -> None:
    owner = Owner("party", ScaledColumns(np.zeros((4, 3))), names=("a", "b", "c"))
    with pytest.raises(ConfigError, match=r"at 'party': the party has 3 columns, a, b, c: name one of them"):
        WithholdColumns(columns=(column,)).fit(owner, np.random.default_rng(0))
