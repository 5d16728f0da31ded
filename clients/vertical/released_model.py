"""A passive party's trained part of the model: its own weights, the adversary's version of them, and what
known attacks make of its scores before they leave.
"""

from collections.abc import Callable, Mapping

import numpy as np

from vflens.attacks import estimate
from vflens.clients.vertical.aligned_run import AlignedRun
from vflens.models.part import Part
from vflens.numerics.linear_system import first_differences
from vflens.score.theory import ReleasedModel
from vflens.types import Array, Moments

_CLOSE = 1e-9  # columns lie in [0, 1]
#: The attacks on scores that take no time: the solutions nearest to ½ (RVG §V), to the mean, and to the mean
#: in the metric of the covariance.
KNOWN_ATTACKS = ("half_star", "mean_star", "lmmse")


def released_model(
    run: AlignedRun[Part], disclosed: Callable[[], Mapping[str, Array] | None], *, granted: bool
) -> ReleasedModel | None:
    """The trained model of a party's ``run``; None if no closed form covers it.

    ``disclosed`` returns the parameters disclosed to the active party, or None; ``granted``: rows were too.
    Closed forms cover one passive party under softmax regression that trains on H x, or on 1 − x. With
    several parties A, P and K belong to all of them together.
    """
    if len(run.federation.passive) > 1 or not run.federation.model.closed_forms:
        return None
    moved, own = _input_map(run), run.model.parameters()
    given = disclosed()
    if moved is None or (given is not None and not np.array_equal(given["bias"], own["bias"])):
        return None
    matrix, reflected = moved
    weight = None if given is None else given["weight"]
    if reflected and weight is not None and not np.array_equal(weight, own["weight"]):
        return None
    return ReleasedModel(own["weight"] @ matrix, weight, reflected=reflected, granted=granted)


def _input_map(run: AlignedRun[Part]) -> tuple[Array, bool] | None:
    """H (d, d) with the inputs of ``run`` = H x for every row, or −I and True for 1 − x; None where neither
    or another H fits too.
    """
    d = run.truth.shape[1]
    if run.inputs is run.truth:
        return np.eye(d), False
    x, inputs = run.truth[:], run.inputs[:]
    if np.array_equal(inputs, x):
        return np.eye(d), False
    if np.array_equal(inputs, 1 - x):
        return -np.eye(d), True
    solution, _, rank, _ = np.linalg.lstsq(x, inputs, rcond=None)
    fits = rank == d and np.allclose(x @ solution, inputs, rtol=0, atol=_CLOSE)
    return (solution.T, False) if fits else None


def known_errors(model: ReleasedModel, training: Array, rows: Array) -> Mapping[str, float]:
    """Attack → its mean squared error per column on ``rows`` (n, d), n ≥ 1, once their scores are released.

    Each attack is given what it wants: exact scores, the weights, and mean and covariance of the rows
    ``training`` (N, d). Columns are scaled to [0, 1], and answers are clipped to that. Whoever sends the
    gradients can leave the classes hardly different: all that float64 tells apart is counted as known.
    """
    A = _row_space(first_differences(len(model.weight)) @ model.weight)
    given = Moments(training.mean(axis=0), np.atleast_2d(np.cov(training, rowvar=False)))
    guesses = {name: estimate(name, A, rows @ A.T, moments=given).values for name in KNOWN_ATTACKS}
    return {name: float(np.mean((found.clip(0.0, 1.0) - rows) ** 2)) for name, found in guesses.items()}


def _row_space(A: Array) -> Array:
    """An orthonormal basis (r, d) of what the equations ``A`` (m, d) tell up to rounding."""
    _, sizes, basis = np.linalg.svd(A, full_matrices=False)
    given: Array = basis[sizes > sizes.max(initial=0.0) * max(A.shape) * np.finfo(float).eps]
    return given
