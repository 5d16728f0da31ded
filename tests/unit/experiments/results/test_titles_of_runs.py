"""The first sentence about a run: who finds which column, of whom, how exactly, beside a guess."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from runfolder import metric, scores, write_party, write_run

from vflens.experiments.outcome.finding import Finding, Findings, Quantity
from vflens.experiments.results.record import RecordedRun, read_runs
from vflens.experiments.results.verdict import verdict

WHERE: dict[str, Any] = {"target": "passive", "scored_set": "predict", "rows": 360}
SECOND = "From 360 predictions the active party reconstructs the passive party's pixels"


def run_of(folder: Path, error: float, stderr: float | None = 1e-4, **more: Any) -> RecordedRun:
    """A run with a column whose 1 stands for 200, of which ls errs by ``error``, a blind guess by .08."""
    kept = [m for m in scores({"ls": 0.02}) if m["metric"] != "column_mse"]
    kept += [metric("column_unit", 200.0, column="pixel_2_5", **WHERE)]
    kept += [metric("column_mse", error, column="pixel_2_5", attack="ls", **WHERE)]
    if stderr is not None:
        kept += [metric("column_mse_stderr", stderr, column="pixel_2_5", attack="ls", **WHERE)]
    run = write_run(folder / "demo", {"ls": 0.02}, **more)
    write_party(run / "passive", "passive", metrics=kept)
    return read_runs([run])[0]


@pytest.mark.parametrize(
    ("error", "how"),
    [(1e-18, "everyone's pixel_2_5 at the passive party exactly; a guess is 57 off."),
     (0.01, "pixel_2_5 at the passive party to within ± 20; a guess to within ± 57.")],
)  # fmt: skip
def test_the_first_sentence_names_the_column_and_the_second_the_error(
    tmp_path: Path, error: float, how: str
) -> None:
    """20 of 200 is the root of .01; 57 that of the blind error .08."""
    text = verdict([run_of(tmp_path, error, 0.0 if error < 1e-9 else 1e-4)])
    assert text.headline.startswith(f"From 360 predictions the active party finds {how} {SECOND}: it finds ")


def test_a_defended_run_names_its_defence_first(tmp_path: Path) -> None:
    text = verdict([run_of(tmp_path, 0.01, defenses=[{"name": "round_scores", "digits": 2}])])
    first = "With round_scores (digits 2): from 360 predictions the active party finds pixel_2_5 at "
    assert text.headline.startswith(first)


@pytest.mark.parametrize(
    ("error", "stderr"),
    [(0.09, 1e-4), (0.079, 0.01), (0.01, None)],
    ids=["not found", "not decided", "without an interval"],
)
def test_what_is_not_found_gives_no_title(tmp_path: Path, error: float, stderr: float | None) -> None:
    text = str(verdict([run_of(tmp_path, error, stderr)]))
    assert text.startswith(SECOND)
    assert "to within" not in text


def test_without_units_the_sentence_is_that_of_the_error(tmp_path: Path) -> None:
    assert verdict(read_runs([write_run(tmp_path / "demo")])).headline.startswith(SECOND)


def made(quantity: Quantity, value: float, blind: float, subject: str, **changes: Any) -> Finding:
    place = {"attack": "ls", "adversary": "the active party", "rows": 360, "subject": subject}
    given = {"low": value, "high": value, "target": "passive", "scored_set": "predict", **place, **changes}
    return Finding(quantity=quantity, value=value, blind=blind, **given)


AGE = made(Quantity.ERROR, 3.0, 17.0, "age")


@pytest.mark.parametrize(
    ("finding", "first"),
    [
        (
            made(Quantity.ERROR, 3.0, 17.0, "age", attack="clear_features", scored_set="train"),
            "From training in the clear the active party finds age at ",
        ),
        (
            made(Quantity.ERROR, 3.0, 17.0, "age", scored_set="train"),
            "Of 360 train rows the active party finds age at ",
        ),
        (
            made(Quantity.ERROR, 0.0, 17.0, "age", scored_set="round-0", adversary="the server"),
            "Of 360 rows of round 0 the server finds everyone's age at ",
        ),
        (
            made(Quantity.RIGHT, 0.99, 0.6, "hiv"),
            "From 360 predictions the active party finds hiv at the passive party in 99 % of rows; a guess ",
        ),
    ],
)
def test_a_title_speaks_of_its_own_phase_and_adversary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finding: Finding, first: str
) -> None:
    monkeypatch.setattr(RecordedRun, "findings", Findings(found=(finding,)))
    assert verdict(read_runs([write_run(tmp_path / "demo")])).headline.startswith(first)


def test_the_column_that_gives_away_most_is_named() -> None:
    less, exact, again = (
        made(Quantity.ERROR, e, 17.0, n) for e, n in ((1.0, "bmi"), (0, "cost"), (0, "crp"))
    )
    assert Findings(found=(AGE, less, exact, again)).most_exposed() == exact
    assert Findings(found=(made(Quantity.ALL, 0.0, 1.0, "columns"),)).most_exposed() is None


def test_a_column_of_two_values_is_judged_by_its_right_ones() -> None:
    """The square error of a flag may be better than a guess although no more values are right."""
    right, square = made(Quantity.RIGHT, 0.9, 0.9, "flag"), made(Quantity.ERROR, 0.2, 0.3, "flag")
    assert Findings(found=(square, right)).most_exposed() is None
    assert Findings(found=(square, right, AGE)).most_exposed() == AGE
