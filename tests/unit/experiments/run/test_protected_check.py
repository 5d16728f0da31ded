"""``vflens check`` says what the integers of protected training have room for, and refuses what is idle."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from processes import experiment_file

from vflens.errors import ConfigError
from vflens.experiments.run.check import check
from vflens.experiments.run.loading import load_any
from vflens.experiments.run.run import run
from vflens.models.family import ModelFamily
from vflens.models.settings import ON_SHARES
from vflens.numerics.shares.response import SIGMOID
from vflens.numerics.shares.scale import Scale, fitting
from vflens.registry import MODELS

TRAINING = {"epochs": 1, "batch_size": 20, "learning_rate": 0.3, "optimizer": "sgd", "protection": "shares"}


def logistic(rate: float, l2: float, rows: int) -> Scale:
    return fitting(SIGMOID, rate, l2, rows, columns=9, steps=10)


def defended(name: str, at: str) -> dict[str, Any]:
    return {"scenarios": [{"name": "run", "defenses": [{"name": name, "at": at}]}]}


@pytest.mark.parametrize(("l2", "rows"), [(0.0, 20), (0.01, 20), (0.5, 7)])
def test_the_largest_sum_is_that_of_the_worst_step(l2: float, rows: int) -> None:
    """All rows have the largest feature and residual; with a penalty θ stands where it can be largest."""
    scale = logistic(0.3, l2, rows)
    worst = rows * 2**16 * int(1.01 * 2**28) * round(0.3 / rows * 2**scale.rate_bits)
    if l2:
        worst += round(2 * 0.3 * l2 * 2**scale.shift) * int(1.01 / (2 * l2) * 2**20)
    assert scale.largest_change(rows) == pytest.approx(worst, rel=0.02)
    assert 2**59 < scale.largest_change(rows) < 2**62


def test_the_largest_batch_is_taken_and_one_row_more_is_refused() -> None:
    most = logistic(0.3, 0.01, 20).largest_batch
    assert logistic(0.3, 0.01, most).largest_batch == most > 1000
    with pytest.raises(ValueError, match=f"or a batch_size of at most {most}$"):
        logistic(0.3, 0.01, most + 1)


@pytest.mark.parametrize(
    ("rate", "better", "remedy"),
    [(1e-12, 1e-8, "take a larger learning_rate$"), (1e15, 1e12, "take a smaller learning_rate$")],
)
def test_a_rate_that_no_batch_size_mends_is_refused_by_name(rate: float, better: float, remedy: str) -> None:
    with pytest.raises(ValueError, match=remedy):
        logistic(rate, 0.0, 1)
    assert logistic(better, 0.0, 1).largest_batch >= 1


def test_the_bounds_are_one_line_whatever_the_number_of_scenarios(tmp_path: Path) -> None:
    scenarios = [{"name": "one"}, {"name": "two"}]
    text = check(experiment_file(tmp_path, training=TRAINING, scenarios=scenarios))["protection"]
    rate = 3932 * 20 / 2**18  # 0.3 / 20 · 2¹⁸ = 3932.16
    assert text.startswith("shares, 20 rows in a batch of at most ")
    assert f", 9 columns with the bias, learning_rate = 0.3 taken as {rate:.6g}, largest sum 2^" in text
    assert math.isclose(rate, 0.3, rel_tol=1 / 64)
    assert float(text.partition("largest sum 2^")[2].removesuffix(" of 2^62")) < 62


def of_a_number(rate: float, l2: float = 0.0) -> dict[str, Any]:
    """Ten columns and the bias, 120 training rows."""
    return {
        "data": {"name": "diabetes", "sample": 150},
        "model": {"family": "linear_regression"},
        "training": {**TRAINING, "learning_rate": rate, "l2": l2},
        "attacks": [],
    }


@pytest.mark.parametrize(("l2", "most"), [(0.0, 0.0454), (0.05, 0.0452), (3.0, 0.0357)])
def test_the_largest_rate_of_linear_regression_is_said_and_taken(
    tmp_path: Path, l2: float, most: float
) -> None:
    """It is 1/(2(11 + l2)), rounded down; one digit more in the last place is refused in the same words."""
    text = check(experiment_file(tmp_path, **of_a_number(0.01, l2)))["protection"]
    assert f"11 columns with the bias, learning_rate = 0.01 taken as 0.01 (at most {most}), " in text
    assert most <= 0.5 / (11 + l2) < most + 1e-4
    taken = check(experiment_file(tmp_path, **of_a_number(most, l2)))["protection"]
    assert f"learning_rate = {most} taken as" in taken
    with pytest.raises(ConfigError, match=f"take at most {most}, which is"):
        check(experiment_file(tmp_path, **of_a_number(most + 1e-4, l2)))


def test_logistic_regression_has_no_largest_rate(tmp_path: Path) -> None:
    assert "(at most" not in check(experiment_file(tmp_path, training=TRAINING))["protection"]


def test_the_families_that_are_trained_on_shares_are_those_with_a_response() -> None:
    kinds: list[type[ModelFamily]] = [MODELS.get(name) for name in MODELS.names()]
    titles = {kind.title for kind in kinds if kind.response is not None}
    assert titles == {f"{word} regression" for word in ON_SHARES.removesuffix(" regression").split(" or ")}


def test_training_in_the_clear_has_no_such_line(tmp_path: Path) -> None:
    assert "protection" not in check(experiment_file(tmp_path))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"training": {**TRAINING, "optimizer": "adam"}}, "'sgd' and a larger learning_rate"),
        (
            {**of_a_number(0.01), "training": {**TRAINING, "optimizer": "adam"}},
            r"'sgd' and a learning_rate of at most 1/\(2\(d \+ l2\)\), where d counts the columns",
        ),
        ({"training": {**TRAINING, "patience": 2}}, "set it to 0"),
        ({"aggregator": "active"}, "aggregator = 'active'"),
        (defended("grad_perturb", "active"), "'grad_perturb' at .* would never act"),
        (defended("dp_gaussian", "passive"), "'dp_gaussian' at .* would never act"),
    ],
)
def test_what_has_nothing_to_act_on_is_refused(tmp_path: Path, changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        check(experiment_file(tmp_path, **{"training": TRAINING, **changes}))


@pytest.mark.parametrize(
    "changes",
    [
        {"training": TRAINING, "attacks": [{"name": "bmi", "at": "passive"}]},
        {"attacks": [{"name": "loss_threshold"}]},
        of_a_number(0.3),
        {"training": {**TRAINING, "l2": 2.0}},
    ],
)
def test_a_run_refuses_what_check_refuses_before_a_folder_is_made(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    file = experiment_file(tmp_path, **changes)
    with pytest.raises(ConfigError) as checked:
        check(file)
    with pytest.raises(ConfigError) as started:
        run(load_any(file), in_process=True)
    assert str(started.value) == str(checked.value)
    assert list(tmp_path.iterdir()) == [file]
