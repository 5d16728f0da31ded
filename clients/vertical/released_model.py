"""A passive party's part of the model for theory: its own weights, and the adversary's version of them."""

from collections.abc import Callable, Mapping

import numpy as np

from vflens.clients.vertical.aligned_run import AlignedRun
from vflens.models.part import Part
from vflens.score.theory import ReleasedModel
from vflens.types import Array

_CLOSE = 1e-9  # columns lie in [0, 1]


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
    told = disclosed()
    if moved is None or (told is not None and not np.array_equal(told["bias"], own["bias"])):
        return None
    matrix, reflected = moved
    weight = None if told is None else told["weight"]
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
