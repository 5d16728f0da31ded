"""Rows from their logits under parameters that gradient descent on these rows made (ours).

From θ = 0 each step adds a sum of the rows of its batch, weighted by rate and residuals: θ_t = Σ_j w_tj x_j.
Whoever knows the residuals knows w, and then logits are products of rows alone: z_ti = Σ_j w_tj x_jᵀx_i. They
say nothing of a rotation of all rows, which known rows give: as many as there are unknown columns.
"""

from collections.abc import Callable

import numpy as np

from vflens.array import Array

_ROUNDS, _STILL = 20, 1e-6  # at most; rows in [0, 1] move less, and it ends
_ITERATIONS = 300  # of a round: directions of which the logits say little come last


def rows_of_descent(weights: Array, logits: Array, start: Array, known: Array) -> Array:
    """The rows x (n, d), float64, whose logits (weights x) xᵀ are nearly ``logits``.

    Gauss's and Newton's method, each round by LSMR (Fong and Saunders, 2011). The first round takes equations
    of rows known as a whole alone: they are linear in all others, and tell the parameters at least.

    Args:
        weights: w, float64 (t, n), a line for each logit of each step.
        logits: float64 (t, n); NaN: not seen.
        start: (n, d).
        known: which numbers of ``start`` are right, bool (n, d).
    """
    from scipy.sparse.linalg import LinearOperator, lsmr  # slow to load, for few attacks

    x, seen, free = start.copy(), np.isfinite(logits), ~known
    for number in range(_ROUNDS):
        used = seen if number else seen & known.all(axis=1)
        left = np.where(used, logits - (weights @ x) @ x.T, 0)
        slopes = LinearOperator((used.size, int(free.sum())), *_slopes(weights, x, used, free))
        moved = lsmr(slopes, left.ravel(), atol=1e-12, btol=1e-12, conlim=0, maxiter=_ITERATIONS)[0]
        x[free] += moved
        if number and np.abs(moved).max(initial=0) < _STILL:
            break
    return x


def _slopes(
    weights: Array, x: Array, used: Array, free: Array
) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    """The derivative of the ``used`` logits in the ``free`` numbers of ``x``, and its transpose."""
    theta = weights @ x

    def forward(moved: Array) -> Array:
        change = np.zeros(x.shape)
        change[free] = moved.ravel()
        found: Array = used * (theta @ change.T + (weights @ change) @ x.T)
        return found.ravel()

    def backward(flat: Array) -> Array:
        errors = used * flat.reshape(used.shape)
        found: Array = (errors.T @ theta + weights.T @ (errors @ x))[free]
        return found

    return forward, backward
