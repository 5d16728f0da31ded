"""Attacks that learn from known rows what was withheld or done to scores: they find what ``lmmse`` finds
without a defence where nothing is lost, and closed forms where noise is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax
from thinned import first, thinned

from vflens.attacks.helpers.linear.rescaled import Relation, Rows, by_kind, expected
from vflens.attacks.known_scores import KnownScores
from vflens.attacks.lmmse import LinearMMSE
from vflens.attacks.lmmse_rescaled import RescaledLMMSE
from vflens.errors import KnowledgeError
from vflens.experiments.audit.bench import Bench, Plan
from vflens.experiments.audit.models import World, simulate
from vflens.experiments.audit.subject import AuditSubject
from vflens.models.families.linear_regression import LINEAR_REGRESSION
from vflens.models.families.softmax_regression import SOFTMAX_REGRESSION
from vflens.models.family import ModelFamily
from vflens.plugins.attack import Attack
from vflens.plugins.views.vertical import AdversaryView
from vflens.registry import DEFENSES
from vflens.storage.journal import Messages
from vflens.types import Array, ColumnInfo, Exchange, Moments, PartyInfo, Phase, Point, Released, Role

D = 3
COLUMNS = tuple(ColumnInfo(f"c{j}", 0.0, 1.0) for j in range(D))
PLAN = Plan(models=1, known=50, rows=300, seed=20261128, training="secure")


def _bench(classes: int) -> Bench:
    """Correlated columns, and others of the active party that say a little of them."""
    rng = np.random.default_rng(17)
    common = rng.normal(size=(300, 1))
    x = np.clip(0.5 + 0.12 * common + 0.15 * rng.normal(size=(300, D)), 0, 1)
    other = np.clip(0.5 + 0.1 * common + 0.2 * rng.normal(size=(300, 2)), 0, 1)
    return Bench.set_up(AuditSubject("mine", COLUMNS, x, classes, other=other), PLAN)


BENCHES = {k: _bench(k) for k in (2, 3, 4)}


def _world(k: int, seed: int, name: str = "", settings: Mapping[str, Any] | None = None) -> World:
    defenses = [(name, DEFENSES.get(name)(**(settings or {})))] if name else []
    return simulate(BENCHES[k].subject, "trained", PLAN.rng("held back", seed), defenses)


def _answer(attack: Attack, world: World, k: int) -> Array:
    bench = BENCHES[k]
    values: Array = world.attack(attack, bench.rows, bench.known, np.random.default_rng(1)).values
    return values


def _error(values: Array, k: int) -> float:
    return float(((np.clip(values, 0, 1) - BENCHES[k].truth) ** 2).mean())


# -- by hand ---------------------------------------------------------------------------------------------


def _view(
    attack: Attack,
    scores: Array,
    x: Array,
    *,
    own: Array,
    own_weight: Array,
    granted: int,
    disclosed: Mapping[str, Array] | None = None,
    moments: Moments | None = None,
    family: ModelFamily = SOFTMAX_REGRESSION,
    predicted_from: int = 0,
    attacked: int = 10,
) -> AdversaryView:
    """The first ``granted`` of the rows ``x`` are known, the last attacked, and scores begin somewhere."""
    rows, nothing = np.arange(len(x), dtype=np.int32), np.zeros(0, np.int32)

    def released(phase: Phase, point: Point, of: Array, tensors: Mapping[str, Array] | None) -> Released:
        sender = "coordinator" if point is Point.SCORES else "passive"
        return Released(sender, Exchange("run", phase, 0, 0), point, of, tensors=tensors)

    received = [
        released(Phase.PREDICT, Point.SCORES, rows[predicted_from:], {"scores": scores[predicted_from:]}),
        released(Phase.DISCLOSE, Point.PARAMETERS, nothing, disclosed),
    ]
    if granted:
        known = {"features": x[:granted]}
        received.append(released(Phase.DISCLOSE, Point.AUXILIARY, rows[:granted], known))
    if moments is not None:
        covered = {"mean": moments.mean, "covariance": np.asarray(moments.covariance)}
        received.append(released(Phase.DISCLOSE, Point.MOMENTS, nothing, covered))
    k = scores.shape[1]
    columns = tuple(ColumnInfo(f"c{j}", 0.0, 1.0) for j in range(x.shape[1]))
    return AdversaryView(
        party="active",
        target="passive",
        rows=rows[-attacked:],
        n_classes=k,
        transcript=Messages(received),
        own={"features": own, "parameters": own_weight},
        parties=[
            PartyInfo("active", Role.ACTIVE, n_classes=k),
            PartyInfo("passive", Role.PASSIVE, columns=columns),
        ],
        needs=attack.needs | attack.helped_by,
        phases=attack.phases,
        model=family,
    )


def _logits(n: int, d: int, k: int, seed: int) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    x, own = rng.random((n, d)), rng.random((n, 2))
    weight, own_weight, bias = rng.normal(size=(k, d)), rng.normal(size=(k, 2)), rng.normal(size=k)
    z = x @ weight.T + own @ own_weight.T + bias
    return {"x": x, "own": own, "weight": weight, "own_weight": own_weight, "bias": bias, "z": z}


@pytest.mark.parametrize(("k", "family"), [(3, SOFTMAX_REGRESSION), (1, LINEAR_REGRESSION)])
def test_scores_of_known_rows_give_the_columns_that_equations_determine(k: int, family: ModelFamily) -> None:
    """There are as many equations as columns: the truth itself, with the fewest rows that suffice."""
    d = max(k - 1, 1)
    made = _logits(d + 1 + 10, d, k, seed=5)
    scores = made["z"] if family is LINEAR_REGRESSION else log_softmax(made["z"], axis=1)
    kept: dict[str, Any] = {"own": made["own"], "own_weight": made["own_weight"], "family": family}
    view = _view(KnownScores(), scores, made["x"], granted=d + 1, **kept)
    found = KnownScores().reconstruct(view, rng=np.random.default_rng(0))
    np.testing.assert_allclose(found.values, made["x"][-10:], rtol=0, atol=1e-8)
    one_less = _view(KnownScores(), scores, made["x"], granted=d + 1, predicted_from=1, **kept)
    with pytest.raises(KnowledgeError, match=rf"^{d} of the {d + 1} rows granted to 'active' got a predict"):
        KnownScores().reconstruct(one_less, rng=np.random.default_rng(0))


def test_one_factor_is_told_without_known_rows() -> None:
    """Scheme 3 by its formula; the factor from means alone, so near the answer to the scores undone."""
    made = _logits(3000, D, 2, seed=6)
    moments = Moments(np.full(D, 0.5), np.eye(D) / 12)
    disclosed = {"weight": made["weight"], "bias": made["bias"]}
    kept: dict[str, Any] = {
        "own": made["own"],
        "own_weight": made["own_weight"],
        "granted": 0,
        "moments": moments,
    }
    answers = []
    for attack, factor in ((LinearMMSE(), 1.0), (RescaledLMMSE(), 1.0), (RescaledLMMSE(), 0.1)):
        scores = log_softmax(factor * made["z"], axis=1)
        view = _view(attack, scores, made["x"], disclosed=disclosed, attacked=len(scores), **kept)
        answers.append(attack.reconstruct(view, rng=np.random.default_rng(0)).values)
    np.testing.assert_array_equal(answers[1], answers[0])
    assert np.abs(answers[2] - answers[0]).max() < 0.05
    assert ((answers[0] - made["x"]) ** 2).mean() < 0.7 / 12


def test_a_line_for_each_kind_is_found_with_the_noise_around_it() -> None:
    rng = np.random.default_rng(7)
    n, q, a, b = 4000, 2, 0.3, -0.8
    t, own, kind = rng.normal(size=(n, q)), rng.normal(size=(n, q)), rng.integers(0, 3, n)
    constant, noise = rng.normal(size=(3, q)), np.array([[0.09, 0.03], [0.03, 0.04]])
    r = a * t + b * own + constant[kind] + rng.multivariate_normal(np.zeros(q), noise, n)
    rows = Rows(r, own, kind[:, None] == np.arange(4))
    relation = by_kind(rows, t, rows)
    assert relation.scale == pytest.approx(a, abs=0.02)
    np.testing.assert_allclose(relation.noise, noise, atol=0.01)
    np.testing.assert_allclose(relation.sides, r - b * own - constant[kind], atol=0.05)
    unseen = Rows(r[:1], own[:1], np.array([[False, False, False, True]]))
    assert np.isnan(by_kind(rows, t, unseen).sides).all()
    alone = Rows(r[:, :1], own[:, :1], rows.kind)  # of standard normal t the mean by Bayes
    mean = a / (a**2 + noise[0, 0]) * (r - b * own - constant[kind])[:, :1]
    np.testing.assert_allclose(expected(alone, t[:, :1], alone).sides, mean, atol=0.25)


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_the_estimate_under_noise_is_the_closed_form(noise: float) -> None:
    rng = np.random.default_rng(8)
    A, root, mean = rng.normal(size=(2, 4)), rng.normal(size=(4, 4)), rng.random(4)
    K, covariance, scale = root @ root.T, noise * np.array([[2.0, 1.0], [1.0, 3.0]]), 0.3
    sides = rng.normal(size=(6, 2))
    sides[0, 0] = np.nan
    plain = rng.random((6, 4))
    relation, none = Relation(scale, sides, covariance), np.random.default_rng(0)
    found = RescaledLMMSE()._found(relation, A, Moments(mean, K), plain, none)
    gain = K @ A.T @ np.linalg.inv(A @ K @ A.T + covariance / scale**2)
    np.testing.assert_allclose(found[1:], mean + (sides[1:] / scale - A @ mean) @ gain.T, atol=1e-9)
    np.testing.assert_array_equal(found[0], plain[0])


# -- on the models of an audit -----------------------------------------------------------------------------

EXACT: list[tuple[str, dict[str, Any]]] = [
    *(
        ("scheme_1", {"alpha": alpha, "sense": sense})
        for alpha in (1.0, 100.0)
        for sense in ("plus", "minus")
    ),
    *(("scheme_3", {"alpha": alpha}) for alpha in (0.3, 0.9)),
]
LOSSY: list[tuple[str, dict[str, Any]]] = [
    *(("gaussian_scores", {"sigma": sigma}) for sigma in (0.3, 1.0, 3.0)),
    *(("round_scores", {"digits": digits}) for digits in (1, 2)),
    *(("scheme_2", {"alpha": 10.0, "margin": margin}) for margin in (0.0, 0.5)),
    *(("label_only", {"epsilon": epsilon}) for epsilon in (0.0, 0.1)),
    ("dp_gaussian", {}),
    ("dp_laplace", {}),
]


@pytest.mark.parametrize("k", BENCHES)
@pytest.mark.parametrize("name", first(["withhold_parameters", "transform_parameters"]))
def test_withheld_weights_do_not_change_the_error(name: str, k: int) -> None:
    for seed in range(3):
        plain, defended = _world(k, seed), _world(k, seed, name)
        found = _answer(KnownScores(), defended, k)
        np.testing.assert_allclose(found, _answer(LinearMMSE(), plain, k), rtol=0, atol=1e-6)
        assert _error(found, k) < 0.95 * BENCHES[k].blind[BENCHES[k].blind_guess]


def test_turned_columns_are_read_as_they_are() -> None:
    """1 − x with weights W is x with −W, and W·1 more of the bias."""
    world = _world(2, 4, "transform_inputs")
    assert world.parameters is not None
    weight, bias = world.parameters["weight"], world.parameters["bias"]
    turned = replace(world, parameters={"weight": -weight, "bias": bias + weight.sum(axis=1)}, joint=[])
    found = _answer(KnownScores(), world, 2)
    np.testing.assert_allclose(found, _answer(LinearMMSE(), turned, 2), rtol=0, atol=1e-6)
    assert _error(found, 2) < 0.5 * _error(_answer(LinearMMSE(), replace(world, joint=[]), 2), 2)


@pytest.mark.parametrize("k", BENCHES)
@pytest.mark.parametrize(("name", "settings"), thinned(EXACT, 3))
def test_what_loses_nothing_is_undone(name: str, settings: dict[str, Any], k: int) -> None:
    for seed in range(3):
        plain, defended = _world(k, seed), _world(k, seed, name, settings)
        undefended = _error(_answer(LinearMMSE(), plain, k), k)
        assert _error(_answer(RescaledLMMSE(), defended, k), k) == pytest.approx(undefended, abs=1e-6)


@pytest.mark.parametrize(("name", "settings"), thinned(LOSSY, 3))
def test_what_loses_something_leaves_at_most_what_lmmse_or_a_guess_leave(
    name: str, settings: dict[str, Any]
) -> None:
    errors = []
    for k in BENCHES:
        for seed in range(3):
            defended = _world(k, seed, name, settings)
            answers = (_answer(attack, defended, k) for attack in (RescaledLMMSE(), LinearMMSE()))
            undefended = _error(_answer(LinearMMSE(), _world(k, seed), k), k)
            blind = BENCHES[k].blind[BENCHES[k].blind_guess]
            errors.append([undefended, *(_error(values, k) for values in answers), blind])
    undefended, rescaled, lmmse, blind = np.mean(errors, axis=0)
    assert 0.95 * undefended < rescaled < 1.02 * min(lmmse, blind)  # 50 rows chose among fits


@pytest.mark.parametrize(
    ("attack", "name", "settings"),
    [(KnownScores(), "withhold_parameters", {}), (RescaledLMMSE(), "scheme_1", {"alpha": 10.0})],
)
def test_the_truth_of_attacked_rows_is_not_read(attack: Attack, name: str, settings: dict[str, Any]) -> None:
    world, bench = _world(2, 5, name, settings), BENCHES[2]
    x = bench.subject.x.copy()
    x[bench.rows] = np.random.default_rng(9).random((len(bench.rows), D))
    other = replace(world, subject=replace(bench.subject, x=x), joint=[])
    np.testing.assert_array_equal(_answer(attack, world, 2), _answer(attack, other, 2))
