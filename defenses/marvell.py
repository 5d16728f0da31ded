"""Marvell: the Gaussian noise on gradients that best hides one class from the others for a given power.

Against norm and direction scoring (Li et al., 2022); FedAdOb compares with it in Fig. 6.
"""

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from pydantic import Field

from vflens.errors import ConfigError
from vflens.plugins.defense import Context, Defense
from vflens.types import Array, Claim, Owner


class Marvell(Defense):
    """Noise of covariance Σ_y = (λ₁ʸ − λ₂ʸ)ΔΔᵀ/‖Δ‖² + λ₂ʸI, Δ = ḡ₁ − ḡ₀, on the rows of side y.

    The four λ ≥ 0 minimise sumKL of the two sides, taken as Gaussian with coordinate variances u and v,
    under p·tr Σ₁ + (1 − p)·tr Σ₀ ≤ power·‖Δ‖²; then (FPR + FNR)/2 ≥ ½ − √sumKL/4 for every test. A batch
    with one side only is sent as it is: it has nothing to tell apart.
    """

    mixes_rows: ClassVar[bool] = True

    power: float = Field(4.0, gt=0, allow_inf_nan=False, description="noise power in units of ‖Δ‖²")
    positive: int = Field(1, ge=0, description="the class that is hidden among the others")

    def check(self, party: str, n_classes: int) -> None:
        """See :meth:`vflens.plugins.defense.Defense.check`.

        Raises:
            ConfigError: there is no such class: no batch would ever have two sides.
        """
        if self.positive >= n_classes:
            raise ConfigError(
                f"marvell at {party!r}: positive = {self.positive} is no class, choose one from 0 to "
                f"{n_classes - 1}"
            )

    @property
    def needs_labels(self) -> bool:
        """The noise depends on the side of a row."""
        return True

    def fit(self, owner: Owner, rng: np.random.Generator) -> Mapping[str, Array]:
        """Nothing; refuses what :meth:`check` does."""
        self.check(owner.name, owner.n_classes)
        return {}

    def claim(self, state: Mapping[str, Array]) -> Claim:
        """The error of every test of one row, where both sides have the same coordinate variance: ½ −
        1/(4√power), at least 0.

        All power along Δ, alike on both sides, then leaves sumKL ≤ 1/power, so the best four λ leave no more.
        Different variances also separate the classes: they have no claim, nor have batches with one side.
        """
        return Claim(test_error=max(0.0, 0.5 - 0.25 / math.sqrt(self.power)))

    def on_gradient(self, g: Array, ctx: Context) -> Array:
        """Noisy rows (n, w)."""
        labels = ctx.owner.labels
        ones = np.zeros(len(g), bool) if labels is None else labels[ctx.rows] == self.positive
        if ones.all() or not ones.any():
            return g
        delta = g[ones].mean(axis=0) - g[~ones].mean(axis=0)
        size = float(delta @ delta)
        if size == 0:
            return g
        u, v = g[~ones].var(axis=0).mean(), g[ones].var(axis=0).mean()
        variances = best_variances(u / size, v / size, ones.mean(), g.shape[1], self.power) * size
        z = ctx.stream().standard_normal(g.shape)
        along = (z @ delta)[:, None] * delta / size
        first, second = np.sqrt(variances.reshape(2, 2)[ones.astype(int)].T[..., None])
        noisy: Array = g + second * z + (first - second) * along
        return noisy


def best_variances(u: float, v: float, p: float, d: int, power: float) -> Array:
    """(λ₁⁰, λ₂⁰, λ₁¹, λ₂¹) in units of ‖Δ‖², for variances ``u``, ``v`` in the same units."""
    from scipy.optimize import minimize  # slow to load

    u, v = max(u, 1e-9), max(v, 1e-9)
    unit = power / np.maximum([1 - p, (1 - p) * (d - 1), p, p * (d - 1)], 1e-12)  # all power on one λ

    def cost(share: Array) -> float:
        return math.log(max(sum_kl(share * unit, u, v, d), 1e-12))

    found = [
        minimize(
            cost,
            start,
            method="SLSQP",
            bounds=[(0, 1)] * 4,
            constraints={"type": "ineq", "fun": lambda x: 1 - x.sum(), "jac": lambda x: -np.ones(4)},
        )
        for start in (
            [0.25, 0.25, 0.25, 0.25],
            [0.49, 0.01, 0.49, 0.01],
            [0.1, 0.7, 0.1, 0.1],
            [0.1, 0.1, 0.1, 0.7],
        )
    ]
    share = np.clip(min(found, key=lambda f: f.fun).x, 0, 1)
    best: Array = share / max(1.0, share.sum()) * unit
    return best


def sum_kl(x: Array, u: float, v: float, d: int) -> float:
    """KL(side 0 ‖ side 1) + KL(side 1 ‖ side 0) with noise variances ``x``, ‖Δ‖² = 1."""
    a, b = x[1] + u, x[3] + v
    c, e = x[0] + u, x[2] + v
    return float(0.5 * ((d - 1) * (a / b + b / a) + (c + 1) / e + (e + 1) / c) - d)
