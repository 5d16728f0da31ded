"""The general learner (17) of FAR §2.4, φ* = argmin ℓ(φ; x, y), and two instances.

By Prop. 2.11 φ* moves little under little noise if ℓ is twice continuously differentiable. Its constants are
unknown: examples can show it, no certificate can. A network with softplus units is C^∞; the kernel SVM is not
covered: its hinge is not C².
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from vflens.table_noise.mechanisms import normals, uniforms
from vflens.table_noise.svm import SvmSolution, solve_svm
from vflens.types import Array

#: ℓ and its gradient at φ.
Loss = Callable[[Array], tuple[float, Array]]


@dataclass(frozen=True, eq=False)
class Fitted:
    """φ*, ℓ(φ*) and the largest entry of its gradient: 0 at a stationary point."""

    phi: Array
    loss: float
    gradient: float


def learn(loss: Loss, start: Array) -> Fitted:
    """A local minimiser of (17) from ``start``, by L-BFGS."""
    options = {"maxiter": 5000, "maxfun": 20000, "ftol": 1e-15, "gtol": 1e-9}
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    return Fitted(found.x, float(found.fun), float(abs(found.jac).max()))


@dataclass(frozen=True)
class Network:
    """f(x) = aᵀ softplus(W x + b) + c with ``hidden`` units; φ = (W, b, a, c) in one vector."""

    inputs: int
    hidden: int

    def start(self, key: bytes) -> Array:
        """A starting φ: normal, scaled by the number of inputs of each unit."""
        W = normals(key, 0, self.hidden, self.inputs) / np.sqrt(self.inputs)
        a = normals(key, self.hidden, 1, self.hidden)[0] / np.sqrt(self.hidden)
        return np.concatenate([W.ravel(), np.zeros(self.hidden), a, [0.0]])

    def _parts(self, phi: Array) -> tuple[Array, Array, Array, float]:
        h, n = self.hidden, self.hidden * self.inputs
        return phi[:n].reshape(h, self.inputs), phi[n : n + h], phi[n + h : n + 2 * h], float(phi[-1])

    def predict(self, phi: Array, x: Array) -> Array:
        """F of each row, (q,)."""
        W, b, a, c = self._parts(phi)
        f: Array = np.logaddexp(0, x @ W.T + b) @ a + c
        return f

    def loss(self, x: Array, y: Array, *, decay: float = 0.0) -> Loss:
        """(1/q) Σ (y_i − f(x_i))² + decay ‖φ‖², with its gradient; the paper has no decay.

        The proof of Prop. 2.11 needs an isolated φ*; without decay units can be exchanged.
        """

        def value_and_gradient(phi: Array) -> tuple[float, Array]:
            W, b, a, c = self._parts(phi)
            inner = x @ W.T + b
            units = np.logaddexp(0, inner)
            error = units @ a + c - y
            slope = 2 * error / len(y)
            back = slope[:, None] * a * expit(inner)
            parts = [(back.T @ x).ravel(), back.sum(axis=0), units.T @ slope, [slope.sum()]]
            return float(np.mean(error**2) + decay * phi @ phi), np.concatenate(parts) + 2 * decay * phi

        return value_and_gradient


def fourier_features(inputs: int, count: int, width: float, key: bytes) -> Callable[[Array], Array]:
    """κ: R^inputs → R^count with κ(x)·κ(x') ≈ exp(−‖x − x'‖²/(2 width²)) (Rahimi and Recht 2007)."""
    frequencies = normals(key, 0, count, inputs) / width
    phases = 2 * np.pi * uniforms(key, count * inputs, count)

    def kappa(x: Array) -> Array:
        features: Array = np.sqrt(2 / count) * np.cos(x @ frequencies.T + phases)
        return features

    return kappa


def kernel_svm(
    x: Array, y: Array, kappa: Callable[[Array], Array], *, theta: float, rho: float
) -> SvmSolution:
    """The SVM of §2.4 on κ(x): ½‖α‖² + θ Σ max(1 − y_i(κ(x_i)ᵀα + β), 0), as ρ → 0 in (2).

    The paper's row [κᵀ y_i] must read [κᵀ 1]: with y_i the bias would move every row the same way.
    """
    return solve_svm(kappa(np.asarray(x, np.float64)), y, theta=theta, rho=rho)
