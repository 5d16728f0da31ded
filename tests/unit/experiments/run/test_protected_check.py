"""``vflens check`` says what the integers of protected training have room for, and refuses what is idle."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from processes import experiment_file

from vflens.errors import ConfigError
from vflens.experiments.run.check import check
from vflens.numerics.shares.scale import fitting

TRAINING = {"epochs": 1, "batch_size": 20, "learning_rate": 0.3, "optimizer": "sgd", "protection": "shares"}


def defended(name: str, at: str) -> dict[str, Any]:
    return {"scenarios": [{"name": "run", "defenses": [{"name": name, "at": at}]}]}


@pytest.mark.parametrize(("l2", "rows"), [(0.0, 20), (0.01, 20), (0.5, 7)])
def test_the_largest_sum_is_that_of_the_worst_step(l2: float, rows: int) -> None:
    """All rows have the largest feature and residual; with a penalty θ stands where it can be largest."""
    scale = fitting(0.3, l2, rows)
    worst = rows * 2**16 * int(1.01 * 2**28) * round(0.3 / rows * 2**scale.rate_bits)
    if l2:
        worst += round(2 * 0.3 * l2 * 2**scale.shift) * int(1.01 / (2 * l2) * 2**20)
    assert scale.largest_change(rows) == pytest.approx(worst, rel=0.02)
    assert 2**59 < scale.largest_change(rows) < 2**62


def test_the_largest_batch_is_taken_and_one_row_more_is_refused() -> None:
    most = fitting(0.3, 0.01, 20).largest_batch
    assert fitting(0.3, 0.01, most).largest_batch == most > 1000
    with pytest.raises(ValueError, match=f"take a batch_size of at most {most}$"):
        fitting(0.3, 0.01, most + 1)


def test_the_bounds_are_one_line_whatever_the_number_of_scenarios(tmp_path: Path) -> None:
    scenarios = [{"name": "one"}, {"name": "two"}]
    said = check(experiment_file(tmp_path, training=TRAINING, scenarios=scenarios))["protection"]
    rate = 3932 * 20 / 2**18  # 0.3 / 20 · 2¹⁸ = 3932.16
    assert said.startswith("shares, 20 rows in a batch of at most ")
    assert f", 9 columns with the bias, learning_rate = 0.3 taken as {rate:.6g}, largest sum 2^" in said
    assert math.isclose(rate, 0.3, rel_tol=1 / 64)
    assert float(said.partition("largest sum 2^")[2].removesuffix(" of 2^62")) < 62


def test_training_in_the_clear_has_no_such_line(tmp_path: Path) -> None:
    assert "protection" not in check(experiment_file(tmp_path))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"training": {**TRAINING, "optimizer": "adam"}}, "'sgd' and a larger learning_rate"),
        ({"training": {**TRAINING, "patience": 2}}, "set it to 0"),
        ({"aggregator": "active"}, "aggregator = 'active'"),
        (defended("grad_perturb", "active"), "'grad_perturb' at .* would never act"),
        (defended("dp_gaussian", "passive"), "'dp_gaussian' at .* would never act"),
    ],
)
def test_what_has_nothing_to_act_on_is_refused(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        check(experiment_file(tmp_path, **{"training": TRAINING, **changes}))
