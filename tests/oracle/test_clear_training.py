"""What training in the clear gives away: factors of made-up logits, then of a federation's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from laboratory import THREE, federation

from vflens.numerics.estimators.affine import affine_fit
from vflens.numerics.factorization import factorize
from vflens.types import Array


def _steps(x: Array, epochs: int, size: int, k: int, drift: float) -> list[tuple[Array, Array]]:
    """Logits of batches under weights that wander by ``drift`` a step."""
    rng = np.random.default_rng(1)
    W, c, steps = rng.normal(size=(k, x.shape[1])), rng.normal(size=k), []
    for _ in range(epochs):
        for rows in np.split(rng.permutation(len(x)), range(size, len(x), size)):
            steps.append((rows, x[rows] @ W.T + c))
            W, c = W + drift * rng.normal(size=W.shape), c + drift * rng.normal(size=k)
    return steps


@pytest.mark.parametrize(("d", "k", "epochs", "drift"), [(3, 4, 5, 0.1), (6, 2, 20, 0.1), (5, 3, 10, 0.5)])
def test_factors_are_the_rows_up_to_an_affine_map(d: int, k: int, epochs: int, drift: float) -> None:
    x = np.random.default_rng(0).random((120, d))
    factors = factorize(_steps(x, epochs, 40, k, drift), 120, d, sweeps=300)
    r2, _ = affine_fit(factors.x, x)
    assert r2 > 0.9999
    assert factors.residual.max() < 1e-2
    np.testing.assert_allclose(factors.x.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(factors.x.T @ factors.x / 120, np.eye(d), atol=1e-9)


def test_known_columns_make_few_epochs_enough() -> None:
    """One logit a row and epoch: eight unknown columns are too many for 16 epochs, four beside four known
    ones are not.
    """
    x = np.random.default_rng(0).random((120, 8))
    steps = _steps(x, 16, 20, 1, 0.3)
    beside = factorize(steps, 120, 4, sweeps=300, known=x[:, 4:])
    alone = factorize(steps, 120, 8, sweeps=300)
    assert affine_fit(np.hstack([beside.x, x[:, 4:]]), x)[0] > 0.9999
    assert beside.residual.max() < 1e-6
    assert affine_fit(alone.x, x)[0] < 0.9


def test_weights_that_stand_still_show_no_more_than_their_rank() -> None:
    """K = 2 logits of one model: of six columns two directions, R² about a third."""
    x = np.random.default_rng(0).random((400, 6))
    factors = factorize(_steps(x, 10, 100, 2, 0.0), 400, 6, sweeps=20)
    r2, _ = affine_fit(factors.x, x)
    assert 0.25 < r2 < 0.4
    assert factors.residual.max() < 1e-6  # it explains what it saw


def test_logits_of_too_few_columns_leave_a_misfit() -> None:
    x = np.random.default_rng(0).random((120, 6))
    factors = factorize(_steps(x, 10, 40, 4, 0.3), 120, 3, sweeps=20)
    assert np.median(factors.residual) > 0.1


def test_the_affine_fit_is_scored_on_rows_that_it_did_not_see() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random((400, 3))
    mixed = truth @ rng.normal(size=(3, 3)) + rng.normal(size=3)
    r2, mse = affine_fit(mixed, truth)
    assert r2 == pytest.approx(1)
    assert mse < 1e-20
    noisy = truth + rng.normal(0, 0.1, truth.shape)
    expected = 1 - 0.01 / (1 / 12 + 0.01)  # shrinkage: error variance σ²v/(v + σ²), of v = 1/12
    r2, mse = affine_fit(noisy, truth)
    assert mse == pytest.approx(0.01 * (1 / 12) / (1 / 12 + 0.01), rel=0.15)
    assert r2 == pytest.approx(1 - 0.01 / (1 / 12 + 0.01), abs=0.03)
    assert expected < 1
    many = rng.random((400, 150))  # columns that say nothing: fitted rows would look well explained
    assert affine_fit(many, truth)[0] < 0
    assert np.isnan(affine_fit(many, np.ones((400, 3)))[0])
    with pytest.raises(ValueError, match="1 row: one half fits the map"):
        affine_fit(many[:1], truth[:1])


def _metric(local: Any, metric: str, attack: str) -> float:
    rows = local.passive["passive"].metrics._rows
    (value,) = [m["value"] for m in rows if m["metric"] == metric and m["attack"] == attack]
    return float(value)


def test_a_federation_in_the_clear_gives_its_training_rows_away(tmp_path: Path) -> None:
    """Nothing disclosed, scores withheld to labels, parameters withheld: R² still near 1, half explains
    nothing.
    """
    local = federation(
        tmp_path,
        attacks=[{"name": "clear_features", "sweeps": 100}, {"name": "agnostic"}],
        training={"epochs": 40, "batch_size": 24, "learning_rate": 0.05},
        defenses=[{"name": "label_only", "at": "coordinator"}],
        data={"name": "synthetic", "rows": 150, "features": 8, "classes": 3, "informative": 4},
    )
    local.run()
    assert _metric(local, "affine_r2", "clear_features") > 0.98
    assert _metric(local, "affine_r2", "agnostic") < 0.7
    assert _metric(local, "unusable", "clear_features") < 0.1


def test_sums_of_several_parties_are_not_told_apart(tmp_path: Path) -> None:
    local = federation(tmp_path, attacks=[{"name": "clear_features"}], parties=THREE)
    local.run()
    reasons = {m["detail"] for m in local.active.metrics._rows if m["metric"] == "skipped"}
    assert reasons == {
        f"party 'active' saw sums of the embeddings of a, b, c only: this attack needs those of '{target}'"
        for target in "abc"
    }
