"""What every defence promises, checked for each plug-in; a new file in ``defenses/`` is held to it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from defensecases import (
    CASES,
    CLASSES,
    HOOKS,
    MODULE_CASES,
    NAMES,
    ON_MODULES,
    a_network,
    applied,
    penalty_of,
    wrapped,
)
from nonempty import nonempty
from scipy.optimize import minimize
from scipy.special import log_softmax
from scipy.stats import chi2

from vflens import defenses
from vflens.plugins.defense import BATCH_HOOKS, GATE_HOOKS, PHASES, Defense
from vflens.testing import DefenseContract
from vflens.testing.attacks import nothing_drawn
from vflens.testing.defenses import context_of, keeps_argmax, owner_sees, value_at
from vflens.types import Array, Phase


class TestEveryDefense(DefenseContract):
    @pytest.fixture(params=NAMES)
    def defense(self, request: pytest.FixtureRequest) -> Defense:
        return CLASSES[request.param]()


def test_every_defence_is_a_case_and_every_hook_has_its_phases() -> None:
    assert {*PHASES, *ON_MODULES} == set(HOOKS)
    assert {phase for _, hook, phase in CASES if hook == "on_gradient"} == {Phase.TRAIN, Phase.DISCLOSE}
    assert {name for name, *_ in (*CASES, *MODULE_CASES)} == set(NAMES)


def test_registry_equals_the_files_on_disk() -> None:
    folder = Path(defenses.__file__).parent
    assert sorted(p.stem for p in folder.iterdir() if p.suffix == ".py" and p.stem[0] != "_") == NAMES
    assert len(NAMES) >= 4


def test_the_base_leaves_everything_alone() -> None:
    idle = Defense()
    for hook, phases in nonempty(PHASES.items()):
        value = value_at(hook)
        assert getattr(idle, hook)(value, context_of(idle, hook, phases[0])) is value


@pytest.mark.parametrize("name", [n for n, hook in MODULE_CASES if hook == "penalty"])
def test_a_penalty_is_one_number_that_a_model_can_learn_from(name: str) -> None:
    networks = [a_network() for _ in range(2)]
    with nothing_drawn():
        term, again = (penalty_of(name, network) for network in networks)
    assert term == again
    assert term.shape == ()
    assert torch.isfinite(term)
    assert term.requires_grad


@pytest.mark.parametrize("name", [n for n, hook in MODULE_CASES if hook == "wrap_model"])
def test_a_wrapped_model_keeps_the_shape_of_its_outputs(name: str) -> None:
    networks = [a_network() for _ in range(2)]
    with nothing_drawn():
        first, again = (wrapped(name, network) for network in networks)
    states = [[each.numpy().tobytes() for each in m.state_dict().values()] for m in (first, again)]
    assert states[0] == states[1]
    parts: list[Any] = [part for part in first.modules() if hasattr(part, "rekey")]
    for part in parts:
        part.rekey(np.random.default_rng(0))
    assert first(torch.zeros(6, 5)).shape == (6, 3)


def test_withheld_parameters_and_no_others_are_none() -> None:
    cases = [name for name, hook, _ in CASES if hook == "on_parameters"]
    none = [n for n in cases if applied(n, "on_parameters", value_at("on_parameters")) is None]
    assert none == ["withhold_parameters"]


KEEPING = [n for n in NAMES if CLASSES[n]().claim({}).argmax and "on_scores" in CLASSES[n].hooks()]


def test_some_score_defence_claims_to_keep_the_label() -> None:
    assert len(KEEPING) >= 2


def test_the_arg_max_check_rejects_what_moves_it() -> None:
    assert not keeps_argmax(np.log([[0.6, 0.4]]), np.log([[0.4, 0.6]]))
    assert not keeps_argmax(np.log([[0.4, 0.4, 0.2]]), np.log([[0.5, 0.3, 0.2]]))


NOISY = [case for case in CASES if CLASSES[case[0]]().claim({}).noise_std is not None]


def _is_noise_of(std: float, noise: Array, freedom: int) -> bool:
    """Chi-square test at level 1e-6 that Σ noise² / std² has ``freedom`` degrees of freedom."""
    low, high = chi2.ppf([5e-7, 1 - 5e-7], freedom)
    return bool(low < (noise**2).sum() / std**2 < high)


@pytest.mark.parametrize(("name", "hook", "phase"), NOISY)
def test_the_claimed_noise_is_the_noise(name: str, hook: str, phase: Phase) -> None:
    """Softmax removes a row's common shift: of k noises per row of scores, k − 1 are seen.

    Elsewhere rows are so short that no clipping acts, as gradients of a mean over 400 rows are.
    """
    std = CLASSES[name]().claim({}).noise_std
    assert std is not None
    before = np.random.default_rng(4).normal(size=(400, 5))
    before = log_softmax(before, axis=1) if hook == "on_scores" else 1e-6 * before
    noise = applied(name, hook, before, phase) - before
    if hook == "on_gradient" and phase is Phase.TRAIN:  # the claim is of a row's own gradient
        noise = noise * len(before)
    freedom = noise.size
    if hook == "on_scores":
        noise, freedom = noise - noise.mean(axis=1, keepdims=True), 400 * 4
    assert _is_noise_of(std, noise, freedom)
    assert not _is_noise_of(std * 2 / 3, noise, freedom)
    assert not _is_noise_of(std * 3 / 2, noise, freedom)


@pytest.mark.parametrize(("name", "hook", "phase"), [c for c in NOISY if c[2] is not Phase.DISCLOSE])
def test_noise_is_independent_from_row_to_row(name: str, hook: str, phase: Phase) -> None:
    value = log_softmax(np.zeros((6400, 2)), axis=1)
    noise = (applied(name, hook, value, phase) - value)[:, 0]
    for apart in (1, 2, 63, 64, 65):
        assert abs(np.corrcoef(noise[:-apart], noise[apart:])[0, 1]) < 5 / np.sqrt(6400)


@pytest.mark.parametrize(("name", "hook", "phase"), NOISY)
def test_noise_belongs_to_its_secret_and_exchange(name: str, hook: str, phase: Phase) -> None:
    defense = CLASSES[name]()
    context = context_of(defense, hook, phase)
    other = dataclasses.replace(context, exchange=context.exchange._replace(run="another"), secret=b"secret")
    stranger = dataclasses.replace(context, secret=b"another")
    outputs = [getattr(defense, hook)(value_at(hook), c) for c in (context, other, stranger)]
    assert len({o.tobytes() for o in outputs}) == 3


@pytest.mark.parametrize(
    ("name", "hook"),
    [(n, h) for n, h, p in NOISY if p is Phase.TRAIN and h in (*GATE_HOOKS.values(), *BATCH_HOOKS)],
)
def test_noise_of_training_belongs_to_its_step_and_rows(name: str, hook: str) -> None:
    """The same step with other rows, after a crash, say: the difference would be free of the noise."""
    defense = CLASSES[name]()
    context = context_of(defense, hook, Phase.TRAIN)
    later = dataclasses.replace(context, exchange=context.exchange._replace(step=8), secret=b"secret")
    others = dataclasses.replace(context, rows=context.rows + 1, secret=b"secret")
    outputs = [getattr(defense, hook)(value_at(hook), c) for c in (context, later, others)]
    assert len({o.tobytes() for o in outputs}) == 3


def test_the_noise_claim_is_checked_at_every_hook_that_leaves_with_noise() -> None:
    assert {hook for _, hook, _ in NOISY} >= {"on_scores", "on_gradient", "on_embedding", "on_dataset"}


# -- parameters and inputs --------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in NAMES if CLASSES[n]().claim({}).distortion is not None])
def test_the_claimed_distortion_is_the_distortion(name: str) -> None:
    before = value_at("on_parameters")
    after = applied(name, "on_parameters", before)
    apart = np.mean((before["weight"] - after["weight"]) ** 2)
    claimed = CLASSES[name]().claim({}).distortion
    assert claimed is not None
    np.testing.assert_allclose(apart, claimed, rtol=1e-9)


def _scores_at_the_optimum(x: Array, y: Array, *, penalise_bias: bool) -> Array:
    """Log-probabilities (n, k) of the softmax regression that minimises cross-entropy + .01·Σθ²."""
    n, d, k = len(x), x.shape[1], y.shape[1]
    padded = np.column_stack([x, np.ones(n)])
    penalised = np.ones((k, d + 1))
    penalised[:, -1] = penalise_bias

    def loss(theta: Array) -> tuple[float, Array]:
        theta = theta.reshape(k, d + 1)
        log_c = log_softmax(padded @ theta.T, axis=1)
        gradient = (np.exp(log_c) - y).T @ padded / n + 0.02 * penalised * theta
        return float(-(y * log_c).sum() / n + 0.01 * (penalised * theta**2).sum()), gradient.ravel()

    best = minimize(loss, np.zeros(k * (d + 1)), jac=True, method="BFGS", options={"gtol": 1e-9})
    scores: Array = log_softmax(padded @ best.x.reshape(k, d + 1).T, axis=1)
    return scores


@pytest.mark.parametrize("name", [n for n in NAMES if CLASSES[n]().claim({}).same_optimum])
def test_the_optimum_has_the_same_scores_where_promised(name: str) -> None:
    claim = CLASSES[name]().claim({})
    x, y = np.asarray(owner_sees().features), np.eye(5)[np.arange(6) % 5]
    moved = applied(name, "on_inputs", x)
    assert np.abs(moved - x).max() > 0.1
    spared = not claim.unpenalised_bias
    before, after = (_scores_at_the_optimum(a, y, penalise_bias=spared) for a in (x, moved))
    np.testing.assert_allclose(after, before, atol=1e-6)
    if claim.unpenalised_bias:  # and the condition is needed
        before, after = (_scores_at_the_optimum(a, y, penalise_bias=True) for a in (x, moved))
        assert np.abs(after - before).max() > 1e-3


# -- each score defence against its definition --------------------------------------------------------


def _scores(name: str, c: Any, **params: Any) -> Array:
    defense = CLASSES[name](**params)
    log_c = np.log(np.asarray(c), out=np.full(np.shape(c), -np.inf), where=np.asarray(c) > 0)
    probabilities: Array = np.exp(
        defense.on_scores(log_c, context_of(defense, "on_scores", Phase.PREDICT, rows=len(log_c)))
    )
    return probabilities


def test_round_scores_rounds_probabilities() -> None:
    c = [[0.666, 0.3335, 0.0005], [1.0, 0.0, 0.0]]
    expected = [[0.7, 0.3, 0.0], [1.0, 0.0, 0.0]]
    np.testing.assert_allclose(_scores("round_scores", c, digits=1), expected, atol=1e-15)
    np.testing.assert_allclose(_scores("round_scores", c, digits=2)[0], [0.67, 0.33, 0.0], atol=1e-15)


def test_round_scores_leaves_a_label_when_all_round_to_zero() -> None:
    c = np.full((1, 40), 0.025)
    c[0, 7] = 0.026
    np.testing.assert_allclose(_scores("round_scores", c, digits=1), 0.1 * np.eye(40)[[7]], atol=1e-15)


def test_label_only_spreads_epsilon_over_the_others() -> None:
    c = [[0.4, 0.4, 0.2, 0.0], [0.1, 0.2, 0.3, 0.4]]
    expected = [[0.45, 0.45, 0.05, 0.05], [0.1 / 3, 0.1 / 3, 0.1 / 3, 0.9]]
    np.testing.assert_allclose(_scores("label_only", c, epsilon=0.1), expected, rtol=1e-12)
    np.testing.assert_array_equal(_scores("label_only", c), [[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])


def test_label_only_never_lets_another_class_overtake() -> None:
    c = np.array([[0.7, 0.2, 0.1]])
    np.testing.assert_allclose(_scores("label_only", c, epsilon=0.9), [[1 / 3, 1 / 3, 1 / 3]], rtol=1e-12)
    for k in range(2, 60):
        row = np.linspace(1.0, 2.0, k)[None] / k
        after = _scores("label_only", row, epsilon=0.99)
        assert keeps_argmax(row, after)
        np.testing.assert_allclose(after.sum(), 1.0, rtol=1e-12)


def test_gaussian_scores_are_log_probabilities_and_keep_zeros() -> None:
    after = _scores("gaussian_scores", [[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]], sigma=2.0)
    np.testing.assert_allclose(after.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(after == 0, [[False, False, True], [False, True, True]])


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("round_scores", {"digits": 0}),
        ("label_only", {"epsilon": -0.1}),
        ("label_only", {"epsilon": 1.0}),
        ("gaussian_scores", {"sigma": 0.0}),
        ("gaussian_scores", {"sigma": float("inf")}),
        ("withhold_parameters", {"sigma": 1.0}),
    ],
)
def test_hyper_parameters_out_of_range_are_refused(name: str, params: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(params))):
        CLASSES[name](**params)
