"""InstaHide and GradPerturb, each against its definition."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from laboratory import experiment, federation, figures
from pydantic import ValidationError
from scipy.stats import kstest

from vflens.array import ScaledColumns
from vflens.defenses.grad_perturb import GradPerturb
from vflens.defenses.instahide import InstaHide
from vflens.errors import ConfigError
from vflens.experiments.run.run import run
from vflens.models.families.split_network import SplitNetwork
from vflens.models.networks.training import Top
from vflens.models.part import Keys
from vflens.models.settings import Training
from vflens.plugins.defense import Context
from vflens.types import Array, Exchange, Owner, Phase

MEAN = 0.3


def _context(
    n: int, hook: str, *, secret: bytes = b"own", step: int = 0, phase: Phase = Phase.TRAIN
) -> Context:
    exchange, rows = Exchange("run", phase, 0, step), np.arange(n, dtype=np.int32)
    state = {"mean": np.array(MEAN)}
    return Context(
        Owner("party"), exchange, rows, state, hook=hook, position=0, secret=secret, common=b"common"
    )


# -- instahide


def _matrix(defense: InstaHide, n: int, **which: Any) -> Array:
    """The weights (n, n) of a batch: the labels of as many classes as rows show them."""
    return defense.on_batch_labels(np.eye(n), _context(n, "on_batch_labels", **which))


@pytest.mark.parametrize("mixed", [1, 2, 3, 4])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 64])
def test_a_mixture_has_so_many_different_rows_of_the_batch(mixed: int, n: int) -> None:
    weights = _matrix(InstaHide(mixed=mixed), n)
    assert ((weights > 0).sum(axis=1) == min(mixed, n)).all()
    assert ((weights > 0).sum(axis=0) == min(mixed, n)).all()  # no row is in more mixtures than another
    assert (np.diag(weights) > 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-12)
    if min(mixed, n) > 1:
        assert weights.max() <= 0.65


def test_two_weights_are_uniform_where_both_fit() -> None:
    own = np.diag(_matrix(InstaHide(mixed=2), 1200))
    assert kstest(own, "uniform", args=(0.35, 0.3)).pvalue > 1e-6
    assert kstest(own, "uniform", args=(0.0, 1.0)).pvalue < 1e-6


@pytest.mark.parametrize("mixed", [3, 4])
def test_more_weights_are_as_those_of_ordered_cuts(mixed: int) -> None:
    """Uniform on the simplex: the gaps between random cuts of [0, 1]; then those that fit."""
    cuts = np.sort(np.random.default_rng(0).random((20_000, mixed - 1)), axis=1)
    gaps = np.diff(np.pad(cuts, ((0, 0), (1, 1)), constant_values=((0, 0), (0, 1))), axis=1)
    due = gaps[gaps.max(axis=1) <= 0.65][:, 0]
    own = np.diag(_matrix(InstaHide(mixed=mixed), 2000))
    assert kstest(own, due).pvalue > 1e-6


def test_inputs_have_the_mixtures_of_the_labels_and_signs_of_their_own() -> None:
    n, d = 40, 30
    x = np.random.default_rng(0).random((n, d))
    defense = InstaHide(mixed=3)
    masked = [
        defense.on_batch(x, _context(n, "on_batch", secret=s, step=t))
        for s, t in ((b"own", 0), (b"other", 0), (b"own", 1))
    ]
    for step, batch in zip((0, 0, 1), masked, strict=True):
        np.testing.assert_allclose(
            np.abs(batch), np.abs(_matrix(defense, n, step=step) @ x - MEAN), atol=1e-12
        )
    assert np.abs(_matrix(defense, n, step=0) - _matrix(defense, n, step=1)).max() > 0.1  # fresh for a batch
    signs = [
        np.sign(masked[i] / (_matrix(defense, n, step=s) @ x - MEAN)) for i, s in ((0, 0), (1, 0), (2, 1))
    ]
    for one in signs:
        assert abs(one.mean()) < 5 / math.sqrt(n * d)
        assert len({row.tobytes() for row in one}) == n  # of every row
    assert abs((signs[0] * signs[1]).mean()) < 5 / math.sqrt(n * d)  # another party draws others
    assert abs((signs[0] * signs[2]).mean()) < 5 / math.sqrt(n * d)


@pytest.mark.parametrize("mask", [True, False])
def test_a_prediction_is_of_one_row(mask: bool) -> None:
    x = np.random.default_rng(0).random((6, 9))
    found = InstaHide(mask_predictions=mask).on_batch(x, _context(6, "on_batch", phase=Phase.PREDICT))
    np.testing.assert_array_equal(np.abs(found), np.abs(x - MEAN))
    assert np.array_equal(found, x - MEAN) != mask


@pytest.mark.parametrize("centred", [True, False])
def test_inputs_are_centred_at_the_mean_of_all_numbers(centred: bool) -> None:
    x = np.random.default_rng(0).random((6, 9))
    state = InstaHide(centred=centred).fit(Owner("party", ScaledColumns(x)), np.random.default_rng(0))
    np.testing.assert_allclose(state["mean"], x.sum() / 54 if centred else 0.0, rtol=1e-12)
    nothing = InstaHide().fit(Owner("party", ScaledColumns(np.zeros((6, 0)))), np.random.default_rng(0))
    assert nothing["mean"] == 0  # an active party with labels alone


@pytest.mark.parametrize(("mixed", "largest"), [(2, 0.5), (4, 0.25), (2, 0.0), (5, 0.65)])
def test_weights_that_hardly_fit_are_refused(mixed: int, largest: float) -> None:
    with pytest.raises(ValidationError, match=r"leaves hardly any: choose at least|mixed|largest"):
        InstaHide(mixed=mixed, largest=largest)


def test_both_parties_of_a_federation_mix_alike(tmp_path: Path) -> None:
    """Else labels would belong to other rows; the coordinator has no key to mix with."""
    defenses = [{"name": "instahide", "at": at} for at in ("passive", "active")]
    local = federation(tmp_path, defenses=defenses)
    local.coordinator.prepare()
    exchange, rows = Exchange("tiny/run", Phase.TRAIN, 0, 0), local.coordinator.aligned.train[:20]
    passive, active = local.passive["passive"], local.active
    weights = active.chain.fold("on_batch_labels", np.eye(20), exchange, rows)
    for party in (passive, active):
        mixed = weights @ party.run.truth[rows] - party.run.truth[:].mean()
        np.testing.assert_allclose(np.abs(party.inputs_of(rows, exchange)), np.abs(mixed), atol=1e-12)
    local.run()
    assert local.coordinator.chain._common == b""


def test_an_active_party_takes_its_own_masks_off_before_it_solves(tmp_path: Path) -> None:
    """Its own part of a score has the signs that it drew: with them x̃ of the other party is exact."""
    local = federation(
        tmp_path,
        data={"name": "synthetic", "rows": 120, "features": 6, "classes": 5, "informative": 4},
        defenses=[{"name": "instahide", "at": at, "mixed": 1} for at in ("passive", "active")],
        attacks=[{"name": "ls"}],
    )
    local.run()
    x = local.passive["passive"].run.truth
    with np.load(tmp_path / "active" / "estimates" / "passive.ls.npz") as found:
        masked = np.abs(x[found["rows"]] - x[:].mean())
        np.testing.assert_allclose(np.abs(found["values"]), masked, atol=1e-6)
        assert len(found["rows"]) == 24


# -- grad_perturb


def _gradient_of_class(top: Top, received: Array, row: int, label: int) -> Array:
    """The mean cross-entropy's gradient, in ``received`` of one ``row``, by central differences."""

    def loss(h: Array) -> float:
        logits = top.module["top"](torch.from_numpy(h))
        classes = torch.full((len(h),), label)
        return float(torch.nn.functional.cross_entropy(logits, classes).detach())

    found = np.zeros(received.shape[1])
    for j in range(len(found)):
        step = np.zeros_like(received)
        step[row, j] = 1e-6
        found[j] = (loss(received + step) - loss(received - step)) / 2e-6
    return found


def test_the_gradient_is_perturbed_along_those_of_all_classes() -> None:
    """g̃ = g_y + Σ_c u_c g_c, with a gradient for each class by itself."""
    network = SplitNetwork(architecture="mlp", width=4, top=(5,), precision="float64")
    top = Top(network, (), width=4, classes=3, training=Training(), keys=Keys.under(b"a"))
    rng = np.random.default_rng(0)
    received, labels = rng.normal(size=(6, 4)), rng.integers(0, 3, 6)
    y, exchange = np.eye(3)[labels], Exchange("run", Phase.TRAIN, 0, 0)
    noisy = GradPerturb(epsilon=1.0).on_batch_labels(y, _context(6, "on_batch_labels"))
    released = top.loss_gradient(received, np.zeros((6, 0)), noisy, exchange).gradient
    u = noisy - y
    assert np.abs(u).min() > 0
    for row in range(6):
        by_class = [_gradient_of_class(top, received, row, c) for c in range(3)]
        due = by_class[labels[row]] + sum(u[row, c] * by_class[c] for c in range(3))
        np.testing.assert_allclose(released[row], due, rtol=1e-5, atol=1e-8)


def _tail(n: Array) -> Array:
    """P(⌊Z⌋ = n) ∝ 2^(−tail/4096)."""
    return np.where(n >= 0, n, -n - 1)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 8.0, 700.0])
def test_no_noisy_label_is_more_than_e_to_the_epsilon_as_likely_under_another_label(epsilon: float) -> None:
    """The law of the noise is 2^(−|z|/4096) a step: exact ratios at released values around both labels."""
    defense = GradPerturb(epsilon=epsilon)
    noisy = defense.on_batch_labels(np.eye(2)[[0] * 500], _context(500, "on_batch_labels"))
    steps = defense._steps
    on_grid = noisy * steps - 0.5
    np.testing.assert_allclose(on_grid, np.rint(on_grid), atol=1e-6)
    z = np.rint(on_grid)
    ones, others = np.array([steps, 0]), np.array([0, steps])
    ratio = (_tail(z - others) - _tail(z - ones)).sum(axis=1) * math.log(2) / 4096
    claimed = defense.claim({}).epsilon
    assert claimed == epsilon
    assert ratio.max() <= epsilon
    assert ratio.max() > 0.98 * epsilon - 1e-3


def test_half_the_noise_would_break_the_claim() -> None:
    """How often class 0 has at least 1 and class 1 at most 0: ¼ with label 0, ¼·e^(−ε) with label 1."""
    epsilon, n = 1.0, 40_000
    y = np.eye(2)[np.repeat([0, 1], n)]
    noisy = GradPerturb(epsilon=epsilon).on_batch_labels(y, _context(2 * n, "on_batch_labels"))

    def shares(found: Array) -> tuple[float, float]:
        event = (found[:, 0] >= 1) & (found[:, 1] <= 0)
        return float(event[:n].mean()), float(event[n:].mean())

    first, second = shares(noisy)
    assert abs(first - 0.25) < 5 * math.sqrt(0.25 * 0.75 / n)
    assert abs(second - 0.25 * math.exp(-epsilon)) < 5 * math.sqrt(0.1 / n)
    halved = shares(y + (noisy - y) / 2)
    assert halved[0] / halved[1] > 1.5 * math.exp(epsilon)


def test_the_cost_of_a_run_is_that_of_its_epochs(tmp_path: Path) -> None:
    defenses = [{"name": "grad_perturb", "at": "active", "epsilon": 0.5}]
    federation(tmp_path / "run", defenses=defenses).run()
    found = figures(tmp_path / "run" / "active")
    assert found["training_releases", "", ""] == 3
    assert found["training_epsilon", "", ""] == pytest.approx(1.5)
    refused = experiment(tmp_path / "refused", defenses=defenses, limits={"epsilon": 1.2})
    with pytest.raises(Exception, match=r"makes ε = 1.5 at δ = .*, limits.epsilon is 1.2"):
        run(refused, in_process=True)


def test_a_defence_that_reads_the_hidden_labels_is_refused(tmp_path: Path) -> None:
    """Marvell's noise has another variance on each side: it would tell the label that the other hides."""
    for names in (("grad_perturb", "marvell"), ("marvell", "grad_perturb")):
        refused = experiment(tmp_path, defenses=[{"name": n, "at": "active"} for n in names])
        with pytest.raises(
            ConfigError, match="'marvell' at 'active' reads the labels that 'grad_perturb' hides"
        ):
            run(refused, in_process=True)
