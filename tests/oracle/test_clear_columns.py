"""Training in the clear with a few known rows: the columns themselves, against plain least squares."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from laboratory import experiment, federation, figures
from oneprocess import LocalFederation

from vflens.attacks.clear_columns import ClearColumns
from vflens.attacks.clear_features import ClearFeatures
from vflens.errors import KnowledgeError
from vflens.experiments.results.folders import read_party
from vflens.experiments.run.vertical.knowledge import check_granted
from vflens.numerics.estimators.affine import affine_map
from vflens.recorded.vertical.view import view_of
from vflens.types import Array, Estimate

_CLEAR = {
    "attacks": [{"name": "clear_columns", "sweeps": 300}],
    "training": {"epochs": 40, "batch_size": 24, "learning_rate": 0.05},
    "data": {"name": "synthetic", "rows": 150, "features": 8, "classes": 3, "informative": 4},
    "defenses": [{"name": "withhold_parameters", "at": "passive"}],
}


def _granted(rows: int) -> list[dict[str, object]]:
    return [
        {"what": "parameters", "to": "active"},  # which the defence withholds
        {"what": "auxiliary", "to": "active", "rows": rows},
    ]


def _estimate(local: LocalFederation, attack: ClearFeatures, rows: Array) -> Estimate:
    party = local.active
    view = view_of(
        attack,
        party.run.federation,
        party="active",
        target="passive",
        rows=rows,
        transcript=party.adversary.received,
        own={},
        every=1,
        device="cpu",
    )
    return attack.reconstruct(view, rng=np.random.default_rng(0))


def test_six_known_rows_give_all_others_as_least_squares_does(tmp_path: Path) -> None:
    """Four columns, six rows: the factors and ``numpy.linalg.lstsq`` give the same answer, the truth."""
    local = federation(tmp_path, **_CLEAR, disclose=_granted(6))
    local.run()
    train, truth = local.active.run.federation.train, local.passive["passive"].run.truth
    known = local.passive["passive"].granted_rows("active")
    found = _estimate(local, ClearColumns(sweeps=300), train)
    factors = _estimate(local, ClearFeatures(sweeps=300), train)
    padded = np.column_stack([factors.values, np.ones(len(train))])
    at = np.searchsorted(train, known)
    oracle = padded @ np.linalg.lstsq(padded[at], truth[known], rcond=None)[0]
    np.testing.assert_allclose(found.values, oracle, atol=1e-6)
    np.testing.assert_allclose(found.values, truth[train], atol=1e-6)
    scored = figures(tmp_path / "passive")
    assert scored["mse", "clear_columns", ""] < 1e-12
    assert scored["column_mse", "clear_columns", "x7"] < 1e-12
    assert scored["affine_r2", "clear_columns", ""] > 0.999
    drawn = read_party(tmp_path / "passive").pictures()["train"]
    np.testing.assert_allclose(drawn["estimate:clear_columns"], drawn["original"], atol=1e-6)


@pytest.mark.parametrize(("rows", "beats"), [(2, False), (4, True)])
def test_too_few_known_rows_give_a_part_and_never_nonsense(tmp_path: Path, rows: int, *, beats: bool) -> None:
    local = federation(tmp_path, **_CLEAR, disclose=_granted(rows))
    local.run()
    found = figures(tmp_path / "passive")
    blind = min(found["blind_mse", name, ""] for name in ("zero", "half", "column_means"))
    assert 1e-3 * blind < found["mse", "clear_columns", ""] < (blind if beats else 2.5 * blind)


def test_one_known_row_is_refused_by_name(tmp_path: Path) -> None:
    local = federation(tmp_path, **_CLEAR, disclose=_granted(1))
    local.run()
    reasons = {m["detail"] for m in local.active.metrics._rows if m["metric"] == "skipped"}
    assert reasons == {
        "1 of the 1 row that 'passive' granted were trained on: clear_columns needs at least 2"
    }


def test_a_check_pairs_it_with_a_grant_of_rows_only(tmp_path: Path) -> None:
    with pytest.raises(KnowledgeError, match="'passive' does not grant it its auxiliary"):
        check_granted(experiment(tmp_path, **_CLEAR, disclose=_granted(2)[:1]))
    check_granted(experiment(tmp_path, **_CLEAR, disclose=_granted(2)))


def test_the_penalty_is_that_of_least_error_on_left_out_rows() -> None:
    """Against fits to all rows but one, penalty by penalty."""
    rng = np.random.default_rng(0)
    factors, noise = rng.normal(size=(9, 4)), 0.3 * rng.normal(size=(9, 2))
    truth = factors @ rng.normal(size=(4, 2)) + 5 + noise
    candidates = [9 * 10.0**e for e in range(-12, 4)]
    errors = np.array([_left_out(factors, truth, penalty) for penalty in candidates])
    weight, offset = affine_map(factors, truth)
    for j, penalty in enumerate(candidates[i] for i in errors.argmin(axis=0)):
        expected, at_zero = _ridge(factors, truth[:, j], penalty)
        np.testing.assert_allclose(weight[:, j], expected, atol=1e-9)
        assert offset[j] == pytest.approx(at_zero)
    assert len(set(errors.argmin(axis=0))) == 2 or errors.argmin(axis=0)[0] > 0  # a choice was made


def _ridge(factors: Array, truth: Array, penalty: float) -> tuple[Array, float]:
    """By normal equations of the centred rows."""
    centre, mean = factors.mean(axis=0), truth.mean(axis=0)
    gram = (factors - centre).T @ (factors - centre) + penalty * np.eye(factors.shape[1])
    weight = np.linalg.solve(gram, (factors - centre).T @ (truth - mean))
    return weight, float(mean - centre @ weight)


def _left_out(factors: Array, truth: Array, penalty: float) -> Array:
    """The error (d,) of rows under fits to the others; the penalty stays that of all rows."""
    squares = []
    for i in range(len(factors)):
        others = np.arange(len(factors)) != i
        fits = [_ridge(factors[others], column[others], penalty) for column in truth.T]
        squares.append([(factors[i] @ w + b - x) ** 2 for (w, b), x in zip(fits, truth[i], strict=True)])
    mean: Array = np.mean(squares, axis=0)
    return mean


def test_known_rows_that_are_equal_give_their_mean() -> None:
    weight, offset = affine_map(np.ones((3, 2)), np.full((3, 2), 0.4))
    np.testing.assert_allclose(np.ones(2) @ weight + offset, 0.4)
