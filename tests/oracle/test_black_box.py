"""The black box of RVG §VI: its cases, its convergence, and where it does not converge."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.special import log_softmax

from vflens.attacks.black_box import BlackBox
from vflens.errors import KnowledgeError
from vflens.numerics.estimators.one_feature import Signs, contradicts, reconstruct
from vflens.plugins.views.vertical import AdversaryView
from vflens.storage.journal import Messages
from vflens.types import (
    Array,
    ColumnInfo,
    Exchange,
    Knowledge,
    PartyInfo,
    Phase,
    Point,
    Released,
    Role,
    RowStatus,
)


def _mse(x: Array, omega: float, bias: float, signs: Signs, mean: float | None = None) -> float:
    values, _ = reconstruct(omega * x + bias, signs, mean)
    return float(((values - x) ** 2).mean())


CASES: list[tuple[float, float, Signs]] = [
    (0.7, 0.0, "zero_bias"),
    (-0.7, 0.0, "zero_bias"),
    (2.0, 0.3, "same"),
    (-2.0, -3.0, "same"),
    (-1.0, 3.0, "opposite"),
    (1.0, -3.0, "opposite"),
]


@pytest.mark.parametrize(("omega", "bias", "signs"), CASES)
def test_converges_where_the_feature_fills_its_range(omega: float, bias: float, signs: Signs) -> None:
    rng = np.random.default_rng(0)
    errors = {
        n: np.mean([_mse(rng.random(n), omega, bias, signs) for _ in range(200)]) for n in (10, 100, 1000)
    }
    assert errors[10] > errors[100] > errors[1000]
    assert errors[1000] < 1e-5


@pytest.mark.parametrize("signs", ["zero_bias", "same"])
def test_the_error_is_bounded_by_that_of_the_extremes(signs: Signs) -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        x = rng.beta(rng.uniform(0.3, 4), rng.uniform(0.3, 4), size=int(rng.integers(2, 30)))
        bound = (x.max() - 1) ** 2 + (x.min() ** 2 if signs == "same" else 0)
        assert _mse(x, -1.5, 0.0 if signs == "zero_bias" else -0.4, signs) <= bound + 1e-12


def test_lemma_2_as_printed_is_false() -> None:
    """X uniform on [.4, .6] is i.i.d. in [0, 1]; stretching it to [0, 1] errs by .64/12 = .053 for ever."""
    rng = np.random.default_rng(2)
    for n in (1000, 100_000):
        assert _mse(rng.uniform(0.4, 0.6, n), 1.0, 1.0, "same") == pytest.approx(0.64 / 12, abs=0.002)
    assert _mse(rng.uniform(0, 0.5, 100_000), 1.0, 0.0, "zero_bias") == pytest.approx(1 / 12, abs=0.001)


def test_a_common_sign_misleads_where_the_feature_keeps_away_from_zero() -> None:
    """ω = 2, b₀ = −.5, X in [.5, 1]: v > 0, so case 3 concludes b₀ > 0 and turns the feature around."""
    x = np.random.default_rng(3).uniform(0.5, 1, 10_000)
    values, ambiguous = reconstruct(2 * x - 0.5, "opposite")
    assert not ambiguous
    assert np.corrcoef(values, x)[0, 1] == pytest.approx(-1)


@pytest.mark.parametrize("omega", [2.0, -2.0])
def test_an_ambiguous_orientation_is_half_until_the_mean_resolves_it(omega: float) -> None:
    x = np.random.default_rng(4).beta(0.5, 1.5, 2000)  # mean 1/4
    v = omega * x - omega / 2
    for signs in ("opposite", "unknown"):
        values, ambiguous = reconstruct(v, signs)
        assert ambiguous
        assert (values == 0.5).all()
        values, ambiguous = reconstruct(v, signs, mean=0.25)
        assert not ambiguous
        assert ((values - x) ** 2).mean() < 1e-4
    assert reconstruct(v, "unknown", mean=0.5)[1]  # a mean of ½ fits both


def test_half_beats_choosing_an_orientation_by_a_coin() -> None:
    x = np.random.default_rng(5).random(4000)
    half, _ = reconstruct(x - 0.5, "opposite")
    assert ((half - x) ** 2).mean() < (0.0 + ((1 - x - x) ** 2).mean()) / 2


DEGENERATE: list[tuple[list[float], Signs, float, bool]] = [
    ([2.0], "same", 0.5, True),
    ([2.0, 2.0], "same", 0.5, True),
    ([-1.0], "opposite", 0.5, True),
    ([0.0, 0.0], "zero_bias", 0.5, True),
    ([3.0], "zero_bias", 1.0, False),
]


@pytest.mark.parametrize(("v", "signs", "expected", "ambiguous"), DEGENERATE)
def test_one_row_and_constant_observations(
    v: list[float], signs: Signs, expected: float, ambiguous: bool
) -> None:
    values, flag = reconstruct(np.array(v), signs, mean=0.3)
    assert list(values) == [expected] * len(v)
    assert flag == ambiguous


def test_no_rows() -> None:
    for signs in ("zero_bias", "same", "opposite", "unknown"):
        assert len(reconstruct(np.zeros(0), signs)[0]) == 0
        assert not contradicts(np.zeros(0), signs)


# -- as an attack --------------------------------------------------------------------------------------


def _view(log_c: Array, *, moments: float | None = None, width: int = 1) -> AdversaryView:
    n, k = log_c.shape
    rows, nothing = np.arange(n, dtype=np.int32), np.zeros(0, np.int32)
    received = [
        Released(
            "coordinator", Exchange("run", Phase.PREDICT, 1, 0), Point.SCORES, rows, tensors={"scores": log_c}
        )
    ]
    if moments is not None:
        facts = {"mean": np.array([moments])}
        received.append(
            Released("passive", Exchange("run", Phase.DISCLOSE, 1, 0), Point.MOMENTS, nothing, tensors=facts)
        )
    columns = tuple(ColumnInfo(f"c{j}") for j in range(width))
    return AdversaryView(
        party="active",
        target="passive",
        rows=rows,
        n_classes=k,
        transcript=Messages(received),
        own={"features": np.ones((n, 2)), "parameters": np.arange(2.0 * k).reshape(k, 2)},
        parties=[PartyInfo("active", Role.ACTIVE), PartyInfo("passive", Role.PASSIVE, columns=columns)],
        needs=frozenset(Knowledge),
        phases=frozenset(Phase),
    )


def _scores(x: Array, weight: Array, bias: Array) -> Array:
    own = np.ones((len(x), 2)) @ np.arange(2.0 * len(weight)).reshape(-1, 2).T
    z = own + x[:, None] * weight + bias
    log_c: Array = log_softmax(z, axis=1)
    return log_c


def test_the_attack_sees_scores_and_its_own_columns_only() -> None:
    x = np.random.default_rng(6).random(500)
    log_c = _scores(x, np.array([0.0, 0.3, 4.0]), np.array([0.0, 0.1, 1.0]))
    estimate = BlackBox().reconstruct(_view(log_c), rng=np.random.default_rng(0))
    assert ((estimate.values[:, 0] - x) ** 2).mean() < 1e-4
    assert (estimate.status == RowStatus.OK).all()


def test_the_disclosed_mean_resolves_the_orientation() -> None:
    x = np.random.default_rng(7).beta(0.5, 1.5, 500)
    log_c = _scores(x, np.array([0.0, 2.0]), np.array([0.0, -1.0]))
    rng = np.random.default_rng(0)
    unresolved = BlackBox(signs="opposite").reconstruct(_view(log_c), rng=rng)
    assert (unresolved.status == RowStatus.AMBIGUOUS).all()
    assert (unresolved.values == 0.5).all()
    for mean, moments in (("disclosed", 0.25), (0.25, None)):
        attack = BlackBox(signs="opposite", population_mean=mean)
        resolved = attack.reconstruct(_view(log_c, moments=moments), rng=rng)
        assert ((resolved.values[:, 0] - x) ** 2).mean() < 1e-3
        assert (resolved.status == RowStatus.OK).all()
    with pytest.raises(KnowledgeError, match="disclosed neither moments nor auxiliary rows"):
        BlackBox(signs="opposite", population_mean="disclosed").reconstruct(_view(log_c), rng=rng)


def test_signs_that_cannot_be_true_are_flagged() -> None:
    x = np.random.default_rng(8).random(50)
    log_c = _scores(x, np.array([0.0, 2.0]), np.array([0.0, -1.0]))
    estimate = BlackBox(signs="same").reconstruct(_view(log_c), rng=np.random.default_rng(0))
    assert (estimate.status == RowStatus.INCONSISTENT).all()


def test_saturated_rows_do_not_stretch_the_others() -> None:
    x = np.random.default_rng(9).random(200)
    log_c = _scores(x, np.array([0.0, 2.0]), np.array([0.0, 1.0]))
    log_c[3] = [-np.inf, 0.0]
    estimate = BlackBox().reconstruct(_view(log_c), rng=np.random.default_rng(0))
    assert estimate.status[3] == RowStatus.SATURATED
    assert estimate.values[3] == 0.5
    assert ((np.delete(estimate.values[:, 0], 3) - np.delete(x, 3)) ** 2).mean() < 1e-3


def test_several_unknown_columns_are_refused() -> None:
    log_c = np.log(np.full((2, 2), 0.5))
    with pytest.raises(
        KnowledgeError, match="one unknown column from its scores and there are 3: use a white-box"
    ):
        BlackBox().reconstruct(_view(log_c, width=3), rng=np.random.default_rng(0))
    with pytest.raises(ValidationError):
        BlackBox(population_mean=1.5)
