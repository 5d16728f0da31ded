"""Theory of a scored submission, at the target: closed forms and bounds beside the measured errors.

The target knows its columns, its weights and its disclosures, so it computes this alone, and keeps it like
every figure of its scoring service. Closed forms cover unclipped estimates and rows with complete equations;
a clipped estimate errs by no more, since the truth is in the box. Others know the noise on scores and the
errors of guessed scores: :mod:`vflens.experiments.results.theory` adds these from their folders.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vflens.numerics.linear_system import first_differences, row_basis
from vflens.numerics.theory import believed
from vflens.numerics.theory import closed_forms as theory
from vflens.numerics.theory.distortion_theory import noise_weight
from vflens.plugins.attack import installed_attack
from vflens.plugins.declared import Stated
from vflens.protocol.acts import Guess
from vflens.storage.metrics import Name
from vflens.types import Array, RowStatus, numbered, statuses


@dataclass(frozen=True, eq=False)
class ReleasedModel:
    """The target's part of a model, once trained.

    ``weight`` (k, d) is W_pas for its own columns. ``disclosed`` (k, d) is the adversary's version of it,
    None if withheld. ``reflected``: training used 1 − x. ``granted``: rows were granted, and an
    attack may guess around what they say.
    """

    weight: Array
    disclosed: Array | None
    reflected: bool = False
    granted: bool = False

    @property
    def exact(self) -> bool:
        """Whether the adversary has the true weights."""
        return self.disclosed is not None and np.array_equal(self.weight, self.disclosed)


class TheoryMetric(NamedTuple):
    """One row of the metrics; ``detail`` names the statement that a figure comes from."""

    metric: Name
    value: float
    attack: str
    detail: str = ""


def theory_metrics(
    guesses: Mapping[str, Guess], truth: Array, model: ReleasedModel
) -> Iterator[TheoryMetric]:
    """``theory_*`` figures of the attacks that a statement covers.

    ``theory_rows`` is the number of rows with complete equations: the figures omit the others.
    ``theory_measured`` and ``theory_closed`` are MSE and closed form on the same rows, equal but for
    rounding; a clipped estimate has only ``theory_upper``. ``theory_lower`` and ``theory_upper`` bound every
    model of full rank (without the upper one if this model has a lower rank); ``theory_any_center`` is Tr((I
    − P)K_μ)/d; ``theory_disorder`` counts the rows that break Theorem 1.

    Args:
        guesses: by attack.
        truth: (n, d) of the submitted rows.
        model: the source of scores and disclosed weights.
    """
    stated = {name: found for name in guesses if (found := statements(name))}
    for name, of in stated.items():
        guess, center = guesses[name], of.center_of(truth.shape[1], len(model.weight))
        ok = _complete(guess)
        if center is not None and ok.any() and not (model.granted and of.guessed):
            yield from _stated(name, guess.values[ok], truth[ok], model, center, clipped=of.clipped)
    for name, of in stated.items():
        if of.stretched:
            yield from _one_column(guesses[name], truth)
    if model.exact:
        yield from _orders(guesses, stated, truth)


def statements(attack: str) -> Stated | None:
    """What theory says of the attack called ``attack``; None of one that is not installed here."""
    kind = installed_attack(attack)
    return None if kind is None else kind.stated


def noise_weights(model: ReleasedModel) -> Array | None:
    """B (k, k): noise of second moment S on the logits adds Tr(B S) to the MSE of ls and half*; None without
    such a statement.
    """
    if not model.exact:
        return None
    J = first_differences(len(model.weight))
    return noise_weight(J @ model.weight, J)


def _complete(guess: Guess) -> Array:
    """Rows with all equations; under noise, or with other weights, these may contradict each other."""
    if guess.has(RowStatus.SATURATED).any():
        return guess.has(RowStatus.OK)
    return guess.has(RowStatus.OK, RowStatus.INCONSISTENT)


def _stated(
    name: str, values: Array, truth: Array, model: ReleasedModel, center: float, *, clipped: bool
) -> Iterator[TheoryMetric]:
    J = first_differences(len(model.weight))
    A = J @ model.weight
    if model.disclosed is None:
        return
    if model.reflected:
        stated: believed.StatedError | None = believed.reflected(center, A, truth)
    else:
        stated = believed.closed_form(center, A, J @ model.disclosed, truth)
    if stated is None:
        return
    yield TheoryMetric(Name.THEORY_ROWS, len(truth), name)
    yield TheoryMetric(Name.THEORY_MEASURED, float(((values - truth) ** 2).mean()), name, stated.statement)
    yield TheoryMetric(Name.THEORY_UPPER if clipped else Name.THEORY_CLOSED, stated.mse, name)
    if not clipped:
        yield from _bounds(name, truth, A, center) if model.exact else _upper(name, stated)


def _upper(name: str, stated: believed.StatedError) -> Iterator[TheoryMetric]:
    if np.isfinite(stated.upper):
        yield TheoryMetric(Name.THEORY_UPPER, stated.upper, name)


def _bounds(name: str, truth: Array, A: Array, center: float) -> Iterator[TheoryMetric]:
    """Figures of Theorem 2."""
    bounds = theory.bounds_before_training(theory.second_moment(truth, center), len(A))
    yield TheoryMetric(Name.THEORY_LOWER, bounds.lower, name)
    if row_basis(A).shape[1] == min(A.shape):
        yield TheoryMetric(Name.THEORY_UPPER, bounds.upper, name)
    K_mean = theory.second_moment(truth, truth.mean(axis=0))
    yield TheoryMetric(Name.THEORY_ANY_CENTER, theory.nearest_solution_mse(A, K_mean), name)


def _one_column(guess: Guess, truth: Array) -> Iterator[TheoryMetric]:
    """The black box, if the adversary decided the orientation: RVG §VI."""
    ok = guess.has(RowStatus.OK)
    x, values = truth[ok, 0], guess.values[ok, 0]
    if truth.shape[1] > 1 or len(np.unique(x)) < 2:
        return
    yield TheoryMetric(Name.THEORY_ROWS, len(x), guess.attack)
    yield TheoryMetric(Name.THEORY_MEASURED, float(((values - x) ** 2).mean()), guess.attack, "RVG §VI")
    yield TheoryMetric(Name.THEORY_CLOSED, theory.stretched_mse(x), guess.attack)
    yield TheoryMetric(Name.THEORY_UPPER, theory.stretched_bound(x), guess.attack)
    yield TheoryMetric(Name.THEORY_MIRRORED, theory.stretched_mse(x, mirrored=True), guess.attack)


def _orders(
    guesses: Mapping[str, Guess], stated: Mapping[str, Stated], truth: Array
) -> Iterator[TheoryMetric]:
    half = Guess("half", np.full(truth.shape, 0.5), numbered(statuses(len(truth))))
    known = {**guesses, "half": half}
    for name, of in stated.items():
        for worse in of.no_worse_than:
            if worse in known:
                yield from _theorem_1(known[name], known[worse], truth)


def _theorem_1(better: Guess, worse: Guess, truth: Array) -> Iterator[TheoryMetric]:
    ok = better.has(RowStatus.OK) & worse.has(RowStatus.OK)
    if ok.any():
        norms = (np.linalg.norm((g.values - truth)[ok], axis=1) for g in (better, worse))
        yield TheoryMetric(Name.THEORY_DISORDER, theory.order_violations(*norms), better.attack)
