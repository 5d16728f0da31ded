"""Errors in a column's own unit: against the owner's file, read by hand, and who can see them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from runfolder import metric, scores, write_party, write_run

from vflens.experiments.outcome.finding import Finding, Quantity
from vflens.experiments.outcome.words import error, guessed, in_own_unit, title
from vflens.experiments.results.findings import best_own_errors, own_errors
from vflens.experiments.results.record import RecordedRun, read_runs
from vflens.experiments.results.results import final
from vflens.experiments.results.verdict import to_json, verdict
from vflens.experiments.run.loading import load_any
from vflens.experiments.run.run import run
from vflens.types import Array

EXAMPLES = Path(__file__).parents[4] / "examples"
NUMBERS = {"age": (18, 100), "income": (0, 250), "credit_score": (0, 100)}  # bounds, as the example declares


@pytest.fixture(scope="module", params=[False, True], ids=["own", "lab"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose parties have one owner, or owners of their own."""
    experiment = load_any(EXAMPLES / "own_csv.toml")
    out = tmp_path_factory.mktemp("own")
    return run(experiment.model_copy(update={"out": out, "lab": request.param}), in_process=True).scenarios[0]


def _rows(folder: Path) -> tuple[pd.DataFrame, Array]:
    """The owner's predicted rows as its file holds them, and lmmse's estimates of their scaled columns."""
    with np.load(folder / "active/estimates/passive.lmmse.npz") as estimate:
        rows, values = estimate["rows"], estimate["values"]
    with np.load(folder / "passive/order.npz") as order:
        table = pd.read_csv(EXAMPLES / "bank_passive.csv").iloc[order["order"][rows]]
    return table, values


def _own(run: RecordedRun) -> dict[str, Finding]:
    (result,) = (r for r in final(run) if r.attack == "lmmse")
    return {error.subject: error for error in own_errors(run, result)}


def test_an_error_is_that_of_the_owners_file(folder: Path) -> None:
    table, values = _rows(folder)
    (found,) = read_runs([folder])
    own = _own(found)
    found_better = [j for j, name in enumerate(NUMBERS) if name in own]  # own parties draw their rows anew
    assert len(found_better) >= 2
    for j in found_better:
        name, (low, high) = list(NUMBERS.items())[j]
        estimate = low + np.clip(values[:, j], 0, 1) * (high - low)
        assert own[name].value == pytest.approx(np.sqrt(np.mean((estimate - table[name]) ** 2)), rel=1e-9)
        least = min(
            np.mean((guess - table[name].clip(low, high)) ** 2)
            for guess in (low, (low + high) / 2, _training_mean(folder, name))
        )
        assert own[name].blind == pytest.approx(np.sqrt(least), rel=1e-9)
    worst = found.findings.most_exposed()
    assert worst is not None
    who = f"From {worst.rows:,} predictions the active party"
    assert verdict([found]).headline.startswith(title(worst, who, "the passive party"))


def _training_mean(folder: Path, name: str) -> float:
    """The aligned rows that are not predicted."""
    with np.load(folder / "active/estimates/passive.lmmse.npz") as estimate:
        predicted = estimate["rows"]
    with np.load(folder / "passive/order.npz") as order:
        training = np.delete(order["order"], predicted)
    return float(pd.read_csv(EXAMPLES / "bank_passive.csv").iloc[training][name].mean())


@pytest.mark.parametrize("party", ["active", "coordinator"])
def test_nobody_but_the_owner_has_such_a_figure(folder: Path, party: str) -> None:
    """The folder of the whole run has them, so the test can fail."""
    own = {"column_unit", "column_right", "column_blind_right"}
    (whole,), (alone,) = read_runs([folder]), read_runs([folder / party])
    assert own & {m.name for p in whole.parties for m in p.metrics} == {"column_unit"} | (
        own if any(c.alphabet for c in whole.infos()["passive"].columns) else set()
    )
    assert not own & {m.name for p in alone.parties for m in p.metrics}
    assert best_own_errors(alone) == ()
    assert "to within" not in json.dumps(to_json([alone]))


def beside(found: Finding) -> str:
    return f"{found.subject} {error(found)}, a guess {guessed(found)}"


RIGHT = {"ls": 0.9, "imputation": 0.8}
WHERE = {"target": "passive", "scored_set": "predict", "rows": 360}


@pytest.fixture
def made(tmp_path: Path) -> Iterator[RecordedRun]:
    """A run whose columns are known: one measured, one finite, one constant, one no better than blind."""
    columns = {"income": 0.01, "married": 0.2, "constant": 0.0, "noise": 0.3}
    kept = [m for m in scores({"ls": 0.02}) if not m["metric"].startswith("column")]
    kept += [metric("column_mse", e, attack="ls", column=c, **WHERE) for c, e in columns.items()]
    kept += [metric("column_blind_mse", 0.04 if c != "married" else 0.24, column=c, **WHERE) for c in columns]
    units = {"income": 100_000.0, "married": 1.0, "constant": 0.0, "noise": 5.0}
    kept += [metric("column_unit", u, column=c, **WHERE) for c, u in units.items()]
    kept += [metric("column_right", 0.9, attack="ls", column="married", **WHERE)]
    kept += [metric("column_blind_right", 0.6, column="married", **WHERE)]
    folder = write_run(tmp_path / "demo")
    write_party(folder / "passive", "passive", metrics=kept)
    yield from read_runs([folder])


def test_what_is_said_of_columns(made: RecordedRun) -> None:
    assert [beside(e) for e in best_own_errors(made)] == [
        "married right in 90 % of rows, a guess right in 60 % of rows",
        "income to within ± 10,000, a guess to within ± 20,000",
    ]
    assert [e.gain for e in best_own_errors(made)] == pytest.approx([0.75, 0.5])


def test_a_share_of_right_values_is_compared_with_imputation(tmp_path: Path) -> None:
    kept = [m for m in scores({"ls": 0.02, "imputation": 0.03}) if not m["metric"].startswith("column")]
    kept += [metric("column_right", r, attack=a, column="married", **WHERE) for a, r in RIGHT.items()]
    kept += [metric("column_blind_right", 0.6, column="married", **WHERE)]
    folder = write_run(tmp_path / "demo")
    write_party(folder / "passive", "passive", metrics=kept)
    (own,) = best_own_errors(read_runs([folder])[0])
    assert beside(own) == "married right in 90 % of rows, a guess right in 80 % of rows"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (38_123.0, "38,000"), (0.01234, "0.012"), (1.25, "1.2"), (99.9, "100"), (0.0, "0"),
        (7.04e-6, "7e-06"), (999.6, "1,000"), (-5.0, "-5.0"), (3e15, "3e+15"),
    ],
)  # fmt: skip
def test_two_digits_are_enough(value: float, words: str) -> None:
    assert in_own_unit(value) == words


def test_an_exact_column_says_so_and_no_rounding_error() -> None:
    place: Any = {"attack": "", "target": "", "scored_set": "predict"}
    exact, near = (
        Finding(quantity=Quantity.ERROR, subject="age", rows=9, value=error, blind=18.0, **place)
        for error in (1e-10, 1e-3)
    )
    assert beside(exact) == "age exactly, a guess to within ± 18"
    assert beside(near) == "age to within ± 0.0010, a guess to within ± 18"
    right = Finding.of_share(Quantity.RIGHT, 1.0, 9, 0.6, subject="loan", **place)
    assert beside(right).startswith("loan right in 100 % of rows, a guess")
