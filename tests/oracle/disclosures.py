"""What a defence discloses, and what attacks on it err by."""

from __future__ import annotations

import numpy as np
from laboratory import NOTHING

from vflens import attacks
from vflens.array import ScaledColumns
from vflens.numerics.linear_system import first_differences
from vflens.plugins.defense import Context, Defense
from vflens.types import Array, Exchange, Owner, Phase


def context_of(defense: Defense, weight: Array, x: Array | None = None, secret: bytes = b"secret") -> Context:
    owner = Owner("passive", None if x is None else ScaledColumns(x), parameters={"weight": weight})
    state = defense.fit(owner, np.random.default_rng(1))
    return Context(
        owner, Exchange("run", Phase.DISCLOSE, 1, 0), NOTHING, state, hook="hook", position=0, secret=secret
    )


def system(k: int, d: int, seed: int = 0, n: int = 4000) -> tuple[Array, Array]:
    """Weights (k, d) and correlated rows in the box (n, d)."""
    rng = np.random.default_rng(seed)
    x = np.clip(rng.beta(2, 3, (n, d)) @ (np.eye(d) + 0.2 * rng.random((d, d))) / 1.3, 0, 1)
    return 2 * rng.normal(size=(k, d)), x


def error_of(name: str, disclosed: Array, W: Array, x: Array, log_c: Array | None = None) -> float:
    """What attack ``name`` errs by when it believes in ``disclosed`` and the scores come from W, or are
    ``log_c``.
    """
    J = first_differences(len(W))
    b = x @ (J @ W).T if log_c is None else log_c @ J.T
    return float(np.mean((attacks.estimate(name, J @ disclosed, b).values - x) ** 2))


def disclosed_by(defense: Defense, W: Array, x: Array) -> Array:
    released = defense.on_parameters({"weight": W}, context_of(defense, W, x))
    assert released is not None
    return released["weight"]
