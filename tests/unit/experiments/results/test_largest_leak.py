"""The largest leak of each scenario first, whatever phase it is from: from made-up records."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from runfolder import metric, scores, target, write_run

from vflens.experiments.pages.report import render
from vflens.experiments.results.clear_training import found_in_training
from vflens.experiments.results.labels_membership import up_to_map
from vflens.experiments.results.record import RecordedRun, read_runs
from vflens.experiments.results.verdict import result_table, to_json, verdict
from vflens.experiments.watch import panels

EXACT = (
    "Trained in the clear, the passive party's pixels leak: clear_features finds every training row, "
    "exactly, once a few are known (R² = 1.000 up to one affine map)."
)


def _affine(r2: float, attack: str = "clear_features") -> list[dict[str, Any]]:
    where = {"target": "passive", "scored_set": "train", "rows": 100, "attack": attack}
    return [metric("mse", 0.3, **where), metric("affine_r2", r2, **where)]


def _columns(mse: float) -> list[dict[str, Any]]:
    where = {"target": "passive", "scored_set": "train", "rows": 100}
    found = metric("mse", mse, attack="clear_columns", **where)
    return [found, metric("blind_mse", 0.08, attack="column_means", **where)]


@pytest.fixture
def behind_a_defence(tmp_path: Path) -> tuple[RecordedRun, ...]:
    """A run without defences, and one whose parameters are withheld: no attack on predictions was scored."""
    plain = write_run(tmp_path / "plain", extra=_affine(1.0))
    withheld = [{"name": "withhold_parameters"}]
    guarded = write_run(tmp_path / "guarded", errors={}, defenses=withheld, extra=_affine(1.0))
    return read_runs([plain, guarded])


def test_a_defence_behind_which_training_leaks_all_says_so(behind_a_defence: tuple[RecordedRun, ...]) -> None:
    text = verdict(behind_a_defence)
    assert text.headline == EXACT
    predicted, defended = text.others
    assert predicted.startswith("From 360 predictions the active party reconstructs")
    assert defended == (
        "With withhold_parameters: in training clear_features finds every training row, exactly, once a few "
        "are known (R² = 1.000 up to one affine map), accuracy unchanged."
    )
    assert text.assumption == "Training in the clear: clear_features read training traffic."


def _defended(tmp_path: Path, plain: float, *errors: float) -> str:
    """What is said first of runs whose best attack on predictions leaves these errors of .08."""
    guarded = [
        write_run(tmp_path / f"g{i}", errors={"lmmse": e}, defenses=[{"name": "round_scores", "digits": i}])
        for i, e in enumerate(errors)
    ]
    return verdict(read_runs([write_run(tmp_path / "plain", errors={"lmmse": plain}), *guarded])).others[0]


def test_the_best_of_several_defences_is_named(tmp_path: Path) -> None:
    text = (
        "Best defence here: round_scores (digits 1). The largest leak is 25 % of what a blind guess leaves "
    )
    assert _defended(tmp_path / "1", 0.02, 0.04, 0.06).startswith(text + "open, without it 75 %.")
    nothing = "No defence here lessens the largest leak, 75 % of what a blind guess leaves open."
    assert _defended(tmp_path / "2", 0.02, 0.022, 0.02) == nothing
    assert _defended(tmp_path / "3", 0.02, 0.06).startswith("With round_scores (digits 0): ")
    assert _defended(tmp_path / "4", 0.079, 0.079, 0.079).startswith("With round_scores (digits 0): ")


def test_its_bar_is_full_and_its_cell_holds_a_number(behind_a_defence: tuple[RecordedRun, ...]) -> None:
    page = render(behind_a_defence)
    assert re.findall(r'<div class="meter"><i style="width:([\d.]+)%">', page) == ["100.0", "100.0"]
    assert page.count('R² = 1.000 up to one affine map <span class="small">clear_features, in training') == 2
    assert '<section id="verdict" class="leaks">' in page
    cells = {row[2]: row[3:] for row in result_table(behind_a_defence)[1]}
    assert cells["clear_features"] == ("R² = 1.000 up to one affine map",) * 2
    assert cells["lmmse"][1] == "–"


def test_the_data_and_the_live_page_have_it_too(behind_a_defence: tuple[RecordedRun, ...]) -> None:
    first, second = (run["largest_leaks"] for run in to_json(behind_a_defence)["runs"])
    assert first == second == [
        {
            **{"attack": "clear_features", "target": "passive", "relative": 0.0, "phase": "train"},
            **{"up_to_affine": True, "words": EXACT},
        }
    ]  # fmt: skip
    guarded = behind_a_defence[1]
    assert panels.summary(guarded)["headline"].startswith("With withhold_parameters: trained in the clear")
    row = ("passive", "clear_features", "R² = 1.000 up to one affine map", "0 %")
    assert panels.errors(guarded)["explained"] == [row]


@pytest.mark.parametrize(
    ("figures", "attack", "share"),
    [
        ([*scores({"lmmse": 0.02}), *_affine(0.9)], "clear_features", 0.9),
        ([*scores({"lmmse": 0.02}), *_affine(0.5)], "lmmse", 0.75),
        ([*scores({"lmmse": 0.02}), *_affine(1.0), *_columns(1e-12)], "clear_columns", 1.0),
        ([*scores({"lmmse": 0.02}), *_affine(1.0), *_columns(0.06)], "clear_features", 1.0),
        ([*scores({"lmmse": 0.08}), *_affine(-0.2)], "lmmse", 0.0),
        ([*_affine(0.4), *_affine(0.3, "binary_columns")], "clear_features", 0.4),
    ],
)
def test_the_larger_of_two_leaks_is_the_largest(
    tmp_path: Path, figures: list[dict[str, Any]], attack: str, share: float
) -> None:
    (leak,) = target(tmp_path, figures).largest
    assert leak.attack == attack
    assert leak.taken == pytest.approx(share, abs=1e-9)


def test_values_from_training_are_said_to_be_every_row(tmp_path: Path) -> None:
    run = target(tmp_path, [*scores({"lmmse": 0.02}), *_affine(1.0), *_columns(1e-12)])
    text = verdict([run])
    assert text.headline == (
        "Trained in the clear, the passive party's pixels leak: clear_columns finds every training row, "
        "exactly, once a few are known (MSE 1.0e-12; of the best blind guess, the column means, .080)."
    )
    assert text.others[0].startswith("From 360 predictions ")
    assert text.assumption == "Training in the clear: clear_columns, clear_features read training traffic."


def test_less_from_training_than_from_predictions_stands_last(tmp_path: Path) -> None:
    text = verdict([target(tmp_path, [*scores({"lmmse": 0.02}), *_affine(0.5)])])
    assert text.headline.startswith("From 360 predictions ")
    assert text.assumption.endswith(
        "Trained in the clear, of passive clear_features finds 50 % of what a blind guess leaves open in "
        "every training row, once a few are known (R² = .500 up to one affine map)."
    )


def test_a_part_is_called_a_part() -> None:
    assert found_in_training(up_to_map("x", "passive", 0.66), "by sight") == (
        "x finds 66 % of what a blind guess leaves open in every training row, once a few are known "
        "(by sight)"
    )
