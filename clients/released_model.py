"""A passive party's part of the model as theory speaks of it: its own weights, and what the adversary takes for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from vfl.payload import MODEL_VERSION
from vfl.score.theory import ReleasedModel
from vfl.types import Array, Exchange, Phase

if TYPE_CHECKING:
    from clients.passive import PassiveParty

_CLOSE = 1e-9  # columns lie in [0, 1]


def released_model(party: PassiveParty) -> ReleasedModel | None:
    """The trained model of ``party``; None where no closed form covers it.

    Covered is one passive party under softmax regression that trains on H x, or on 1 − x. Several parties' columns are
    solved for together: A, P and K are then no party's alone.
    """
    run = party.run
    if len(run.federation.passive) > 1 or run.federation.network is not None:
        return None
    moved, own = _input_map(party), run.model.parameters()
    told = _disclosed(party)
    if moved is None or (told is not None and not np.array_equal(told["bias"], own["bias"])):
        return None
    matrix, shift = moved
    weight = None if told is None else told["weight"]
    if not shift.any():
        return ReleasedModel(own["weight"] @ matrix, weight)
    mirror = np.array_equal(matrix, -np.eye(len(shift))) and bool((shift == 1).all())
    known = weight is None or np.array_equal(weight, own["weight"])
    return ReleasedModel(-own["weight"], weight, reflected=True) if mirror and known else None


def _input_map(party: PassiveParty) -> tuple[Array, Array] | None:
    """H (d, d) and h (d,) if the party's defences turn every row x into H x + h."""
    d = party.run.truth.shape[1]
    if not party.chain.acts("on_inputs"):
        return np.eye(d), np.zeros(d)
    probes = np.vstack([np.zeros(d), np.eye(d)])
    exchange = Exchange(party.config.run, Phase.TRAIN, 0, 0)
    ends = party.chain.fold("on_inputs", probes, exchange, np.arange(d + 1, dtype=np.int32))
    matrix, shift = (ends[1:] - ends[0]).T, ends[0]
    affine = np.allclose(party.run.truth @ matrix.T + shift, party.run.inputs, rtol=0, atol=_CLOSE)
    return (matrix, shift) if affine else None


def _disclosed(party: PassiveParty) -> Mapping[str, Array] | None:
    """The parameters that the active party was told; None if it was told none."""
    active = party.run.federation.active.name
    if not any(d.what == "parameters" and d.to == active for d in party.config.disclose):
        return None
    with party.lock:
        return party.disclosed("parameters", 0, MODEL_VERSION).tensors
