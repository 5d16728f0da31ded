"""The adversary's own classifier, on its own columns and labels, for scores that it never received (VAR §IV).

θ = (weights | bias) minimises mean cross-entropy + l2·Σ weights². Received scores refine it: they add (α/n_p)
Σ_j S(f(y_j), c_j) with S(c', c) = Σ_i ln²(c'_i/c_i). The first part is convex, the second is not, so the
search starts from the minimum of the first. L-BFGS on full batches draws nothing: there is one answer. It
works on φ = θ L, with L Lᵀ near the curvature of one class's parameters: correlated columns then cost dozens
of steps instead of thousands.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax

from vflens.array import Array

_PRECISE = {"maxiter": 5000, "ftol": 1e-14, "gtol": 1e-8}
_SINGULAR = 1e-9  # share of the trace that makes a singular curvature definite


@dataclass(frozen=True, eq=False)
class ReceivedScores:
    """Own features (n_p, d_act) of rows with received, finite log-probabilities ``log_c`` (n_p, k); α =
    ``weight``.
    """

    features: Array
    log_c: Array
    weight: float


def fit_classifier(
    features: Array,
    labels: Array,
    classes: int,
    l2: float,
    received: ReceivedScores | None = None,
    *,
    start: Array | None = None,
) -> Array:
    """θ (k, d_act + 1), the bias in the last column; zeros without rows.

    Args:
        features: (n, d_act).
        labels: int (n,), from 0 to ``classes`` − 1.
        classes: k.
        l2: weight of the penalty, ≥ 0.
        received: rows with scores; they may lack labels.
        start: the result without ``received``, if known.
    """
    theta = np.zeros((classes, features.shape[1] + 1)) if start is None else start
    if len(features) and start is None:
        theta = _minimised(theta, padded(features), np.eye(classes)[labels], l2, None)
    if received is not None and len(received.log_c):
        theta = _minimised(theta, padded(features), np.eye(classes)[labels], l2, received)
    return theta


def padded(features: Array) -> Array:
    """``features`` (n, d), and a last column of ones."""
    return np.column_stack([features, np.ones(len(features))])


def objective(
    theta: Array, x: Array, y: Array, l2: float, received: ReceivedScores | None
) -> tuple[float, Array]:
    """The objective and its gradient (k, d_act + 1) at ``theta``; ``x`` is padded, ``y`` one-hot."""
    log_c = log_softmax(x @ theta.T, axis=1)
    n = max(len(x), 1)
    loss = -float((y * log_c).sum()) / n + l2 * float((theta[:, :-1] ** 2).sum())
    gradient = (np.exp(log_c) - y).T @ x / n
    gradient[:, :-1] += 2 * l2 * theta[:, :-1]
    if received is not None:
        seen = padded(received.features)
        log_f = log_softmax(seen @ theta.T, axis=1)
        ratio = log_f - received.log_c
        scale = received.weight / len(ratio)
        loss += scale * float((ratio**2).sum())
        # ∂ ln c'_i/∂z_m = δ_im − c'_m
        slope = ratio - np.exp(log_f) * ratio.sum(axis=1, keepdims=True)
        gradient += 2 * scale * slope.T @ seen
    return loss, gradient


def _minimised(theta: Array, x: Array, y: Array, l2: float, received: ReceivedScores | None) -> Array:
    from scipy.optimize import minimize  # slow to load: an audit reads what every attack declares

    L = np.linalg.cholesky(_curvature(x, l2, received))
    back = np.linalg.inv(L)

    def flat(parameters: Array) -> tuple[float, Array]:
        loss, gradient = objective(parameters.reshape(theta.shape) @ back, x, y, l2, received)
        return loss, (gradient @ back.T).ravel()

    found = minimize(flat, (theta @ L).ravel(), jac=True, method="L-BFGS-B", options=_PRECISE)
    fitted: Array = found.x.reshape(theta.shape) @ back
    return fitted


def _curvature(x: Array, l2: float, received: ReceivedScores | None) -> Array:
    """(d_act + 1, d_act + 1), positive definite: p(1 − p) ≤ ¼ in the cross-entropy, 1 in the squares of
    log-ratios.
    """
    C = x.T @ x / (4 * max(len(x), 1)) + 2 * l2 * np.eye(x.shape[1])
    if received is not None:
        seen = padded(received.features)
        C += 2 * received.weight / len(seen) * seen.T @ seen
    shift = _SINGULAR * float(np.trace(C)) or 1.0  # columns may repeat each other
    return np.asarray(C + shift * np.eye(len(C)))
