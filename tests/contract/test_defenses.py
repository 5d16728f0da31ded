"""What every defence promises, checked for each plug-in; a new file in ``defenses/`` is held to it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from defensecases import (
    ARRAY_HOOKS,
    CASES,
    CLASSES,
    HOOKS,
    NAMES,
    ON_ARRAYS,
    PHASES,
    a_network,
    applied,
    context_of,
    owner_sees,
    penalty_of,
    read_only,
    value_at,
)
from scipy.optimize import minimize
from scipy.special import log_softmax
from scipy.stats import chi2

from vflens import defenses
from vflens.plugins.defense import BATCH_HOOKS, GATE_HOOKS
from vflens.types import Array, Claim, Phase


def test_every_defence_is_a_case_and_every_hook_has_its_phases() -> None:
    assert {name for name, _, _ in CASES} == set(NAMES)
    assert set(PHASES) == set(HOOKS)
    assert {phase for _, hook, phase in CASES if hook == "on_gradient"} == {Phase.TRAIN, Phase.DISCLOSE}
    special = {name for name, hook, _ in CASES if hook not in ARRAY_HOOKS}
    assert {name for name, _, _ in ON_ARRAYS} | special == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_defence_claims_something_or_says_why_not(name: str) -> None:
    """A test that holds each defence to its claim says nothing of one that claims nothing."""
    claims = CLASSES[name]().claim({}) != Claim()
    assert claims != bool(CLASSES[name].unclaimed)


def test_registry_equals_the_files_on_disk() -> None:
    folder = Path(defenses.__file__).parent
    assert sorted(p.stem for p in folder.iterdir() if p.suffix == ".py" and p.stem[0] != "_") == NAMES
    assert len(NAMES) >= 4


def _bytes(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().numpy().tobytes()
    if isinstance(value, torch.nn.Module):
        return {k: v.numpy().tobytes() for k, v in value.state_dict().items()}
    if isinstance(value, dict):
        return {k: _bytes(v) for k, v in value.items()}
    return value if value is None else value.tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_overrides_something_and_leaves_the_rest_alone(name: str) -> None:
    assert CLASSES[name].hooks()
    for hook in set(HOOKS) - CLASSES[name].hooks() - {"penalty"}:
        value = value_at(hook)
        assert applied(name, hook, value) is value


@pytest.mark.parametrize("name", [n for n, hook, _ in CASES if hook == "penalty"])
def test_a_penalty_is_one_number_that_a_model_can_learn_from(name: str) -> None:
    network = a_network()
    term = penalty_of(CLASSES[name](), network)
    assert term.shape == ()
    assert torch.isfinite(term)
    assert term.requires_grad


@pytest.mark.parametrize(("name", "hook", "phase"), ON_ARRAYS)
def test_keeps_shapes_and_float64(name: str, hook: str, phase: Phase) -> None:
    result = applied(name, hook, value_at(hook), phase)
    assert result.shape == (6, 5)
    assert result.dtype == np.float64
    assert not np.isnan(result).any()


@pytest.mark.parametrize(("name", "hook", "phase"), ON_ARRAYS)
def test_no_rows_stay_no_rows(name: str, hook: str, phase: Phase) -> None:
    assert applied(name, hook, np.zeros((0, 5)), phase).shape == (0, 5)


@pytest.mark.parametrize("name", [n for n, hook, _ in CASES if hook == "on_parameters"])
def test_disclosed_parameters_keep_names_shapes_and_float64_or_are_withheld(name: str) -> None:
    before = value_at("on_parameters")
    after = applied(name, "on_parameters", before)
    if name == "withhold_parameters":
        assert after is None
        return
    assert after.keys() == before.keys()
    assert {n: (a.shape, a.dtype) for n, a in after.items()} == {
        n: (a.shape, np.float64) for n, a in before.items()
    }
    assert all(np.isfinite(a).all() for a in after.values())


@pytest.mark.parametrize("name", [n for n, hook, _ in CASES if hook == "wrap_model"])
def test_a_wrapped_model_keeps_the_shape_of_its_outputs(name: str) -> None:
    wrapped = applied(name, "wrap_model", a_network())
    for part in wrapped.modules():
        if hasattr(part, "rekey"):
            part.rekey(np.random.default_rng(0))
    assert wrapped(torch.zeros(6, 5)).shape == (6, 3)


@pytest.mark.parametrize(
    ("name", "hook", "phase"), [c for c in ON_ARRAYS if c[1] in ("on_embedding", "on_gradient")]
)
def test_a_row_moves_others_at_the_gate_only_where_that_is_said(name: str, hook: str, phase: Phase) -> None:
    """Noise behind such a defence has no ε of one row."""
    value = value_at(hook)
    longer = np.where(np.arange(6)[:, None] == 2, 3 * value, value)
    context = context_of(CLASSES[name](), hook, phase=phase)
    owner = dataclasses.replace(context.owner, labels=np.arange(6) % 2)
    context = dataclasses.replace(context, owner=owner, secret=b"secret")
    others = [0, 1, 3, 4, 5]
    first, second = (getattr(CLASSES[name](), hook)(v, context)[others] for v in (value, longer))
    assert (first != second).any() == CLASSES[name].mixes_rows


def _global_state() -> str:
    """NumPy's and torch's global generators must not move."""
    return str((np.random.get_state(legacy=False), torch.get_rng_state().tolist()))  # noqa: NPY002


@pytest.mark.parametrize(("name", "hook", "phase"), CASES)
def test_draws_from_its_own_generator_only(name: str, hook: str, phase: Phase) -> None:
    values = [value_at(hook) for _ in range(2)]
    before = _global_state()
    first, again = (applied(name, hook, value, phase) for value in values)
    assert _bytes(first) == _bytes(again)
    assert _global_state() == before


#: ``wrap_model`` takes a model of its own.
@pytest.mark.parametrize(("name", "hook", "phase"), [c for c in CASES if c[1] != "wrap_model"])
def test_never_writes_into_its_argument(name: str, hook: str, phase: Phase) -> None:
    value = value_at(hook)
    before = _bytes(value)
    applied(name, hook, value, phase)
    assert _bytes(value) == before


#: What breaks careless code: ties for the maximum, zeros, one-hot rows, near-ties, many tiny scores.
AWKWARD_SCORES = {
    "random": log_softmax(np.random.default_rng(3).normal(0, 3, (50, 5)), axis=1),
    "two tied": np.log([[0.4, 0.4, 0.1, 0.05, 0.05]]),
    "all tied": np.log(np.full((1, 7), 1 / 7)),
    "tied beside zeros": np.array([[-np.inf, np.log(0.5), -np.inf, np.log(0.5)]]),
    "one-hot": np.array([[-np.inf, 0.0, -np.inf]]),
    "tied after rounding": np.log([[0.333333, 0.333334, 0.333333]]),
    "all below the last decimal": log_softmax(np.linspace(0.0, 1e-3, 2000)[None], axis=1),
    "two classes": np.log([[0.5000001, 0.4999999], [1e-300, 1.0]]),
}
KEEPING = [n for n in NAMES if CLASSES[n]().claim({}).argmax and "on_scores" in CLASSES[n].hooks()]


def test_some_score_defence_claims_to_keep_the_label() -> None:
    assert len(KEEPING) >= 2


def _keeps_argmax(before: Array, after: Array) -> bool:
    best = before == before.max(axis=1, keepdims=True)
    return bool((after == after.max(axis=1, keepdims=True))[best].all())


@pytest.mark.parametrize("case", AWKWARD_SCORES)
@pytest.mark.parametrize("name", KEEPING)
def test_the_arg_max_stays_among_the_maximisers(name: str, case: str) -> None:
    log_c = read_only(AWKWARD_SCORES[case])
    after = applied(name, "on_scores", log_c)
    assert _keeps_argmax(log_c, after)
    assert np.isfinite(after.max(axis=1)).all()  # some class is left
    assert not np.isnan(after).any()


def test_the_arg_max_check_rejects_what_moves_it() -> None:
    assert not _keeps_argmax(np.log([[0.6, 0.4]]), np.log([[0.4, 0.6]]))
    assert not _keeps_argmax(np.log([[0.4, 0.4, 0.2]]), np.log([[0.5, 0.3, 0.2]]))


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


#: What changes with the request would show a row several times.
PREDICTED = [(n, h) for n, h, phase in CASES if phase is Phase.PREDICT and h != "on_outputs"]


@pytest.mark.parametrize(("name", "hook"), PREDICTED)
def test_a_prediction_row_is_the_same_in_every_request(name: str, hook: str) -> None:
    """Rows asked one by one, in another order or under another number: nothing is drawn anew."""
    defense = CLASSES[name]()
    value = read_only(log_softmax(np.random.default_rng(5).normal(size=(200, 5)), axis=1))
    context = context_of(defense, hook, rows=200, phase=Phase.PREDICT)
    together = getattr(defense, hook)(value, context)
    for step, rows in enumerate((np.arange(199, -1, -1), np.array([7]), np.array([130, 2, 64, 63]))):
        asked = dataclasses.replace(
            context,
            exchange=context.exchange._replace(step=step),
            rows=rows.astype(np.int32),
            secret=b"secret",
        )
        np.testing.assert_allclose(getattr(defense, hook)(value[rows], asked), together[rows], rtol=1e-12)


@pytest.mark.parametrize(("name", "hook", "phase"), [c for c in NOISY if c[2] is not Phase.DISCLOSE])
def test_noise_is_independent_from_row_to_row(name: str, hook: str, phase: Phase) -> None:
    value = log_softmax(np.zeros((6400, 2)), axis=1)
    noise = (applied(name, hook, value, phase) - value)[:, 0]
    for apart in (1, 2, 63, 64, 65):
        assert abs(np.corrcoef(noise[:-apart], noise[apart:])[0, 1]) < 5 / np.sqrt(6400)


@pytest.mark.parametrize(("name", "hook", "phase"), NOISY)
def test_noise_belongs_to_its_secret_and_exchange(name: str, hook: str, phase: Phase) -> None:
    defense = CLASSES[name]()
    context = context_of(defense, hook, phase=phase)
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
    context = context_of(defense, hook, phase=Phase.TRAIN)
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
    probabilities: Array = np.exp(defense.on_scores(log_c, context_of(defense, "on_scores", rows=len(log_c))))
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
        assert _keeps_argmax(row, after)
        np.testing.assert_allclose(after.sum(), 1.0, rtol=1e-12)


def test_gaussian_scores_are_log_probabilities_and_keep_zeros() -> None:
    after = _scores("gaussian_scores", [[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]], sigma=2.0)
    np.testing.assert_allclose(after.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(after == 0, [[False, False, True], [False, True, True]])


def test_withhold_parameters_withholds() -> None:
    assert applied("withhold_parameters", "on_parameters", value_at("on_parameters")) is None


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
