"""A whole batch from one gradient of softmax regression, where no two of its rows share a label.

With D = (P − Y)/n (n, k), P = softmax(X Wᵀ + b) and Y one-hot, the mean cross-entropy has ∇W = Dᵀ X and
∇b = Dᵀ 1. If D were known, X = (Dᵀ)⁺∇W: rows of D are independent for n < k distinct labels, except in
degenerate cases. P follows from Z = X Wᵀ + b, so the unknowns are the n·k logits Z, whatever the number of
columns: Z = (D(Z)ᵀ)⁺ ∇W Wᵀ + b and D(Z)ᵀ 1 = ∇b.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.special import log_softmax, softmax

from vflens.array import Array
from vflens.numerics.gradients.first_layer import layer_input
from vflens.numerics.gradients.labels import row_label
from vflens.words import counted

Pair: TypeAlias = tuple[Array, Array]  # of weight (k, d) and bias (k,)


@dataclass(frozen=True, eq=False)
class BatchRows:
    """``x`` (n, d) with ``labels`` (n,), ascending; ``misfit``: their gradient's distance from the one given
    over its length, 0 up to rounding if they are right.
    """

    x: Array
    labels: Array
    misfit: float


def softmax_row(weight: Array, bias: Array) -> BatchRows:
    """The one row of a batch from its gradient, without the model: closed forms for x and label.

    Args:
        weight: ∇W (k, d).
        bias: ∇b (k,).

    Raises:
        ValueError: ∇b is 0.
    """
    x, misfit = layer_input(weight, bias)
    return BatchRows(x[None], row_label(bias)[None], float(misfit))


def softmax_batch(gradient: Pair, parameters: Pair, labels: Array) -> BatchRows:
    """The rows of a batch with n < k distinct labels, from its gradient and the model.

    The equations are solved as least squares, from all rows at the batch's mean
    probability P̄ = ∇b + (1/n) Σ_i Y_i, which is exact. ``misfit`` tells whether it succeeded.

    Args:
        gradient: ∇W (k, d) and ∇b (k,) of the mean loss.
        parameters: W (k, d) and b (k,) at which it was taken.
        labels: those of the batch, n distinct numbers below k in any order; the n classes of least ∇b where
            they are not known.

    Raises:
        ValueError: labels repeat, or as many as there are classes.
    """
    (in_weight, in_bias), (weight, bias) = gradient, parameters
    labels = np.sort(np.asarray(labels))
    n, k = len(labels), len(bias)
    if len(np.unique(labels)) != n or n >= k:
        raise ValueError(
            f"{counted(n, 'label')} {labels.tolist()} of {counted(k, 'class')}: give fewer than {k}, all "
            "different"
        )
    from scipy.optimize import least_squares  # slow to load, for few attacks

    one_hot = np.eye(k)[labels]
    mean = np.clip(in_bias + one_hot.mean(axis=0), 1e-6, None)
    start = np.tile(log_softmax(np.log(mean)), (n, 1))
    through = in_weight @ weight.T

    def residuals(z: Array) -> Array:
        Z = z.reshape(n, k)
        D = (softmax(Z, axis=1) - one_hot) / n
        found: Array = np.linalg.pinv(D.T) @ through + bias
        return np.concatenate([(found - Z).ravel(), n * (D.sum(axis=0) - in_bias)])

    Z = least_squares(residuals, start.ravel(), xtol=1e-15, ftol=1e-15, gtol=1e-14, max_nfev=100).x
    D = (softmax(Z.reshape(n, k), axis=1) - one_hot) / n
    x = np.linalg.pinv(D.T) @ in_weight
    return BatchRows(x, labels, _misfit(x, one_hot, gradient, parameters))


def _misfit(
    x: Array, one_hot: Array, gradient: tuple[Array, Array], parameters: tuple[Array, Array]
) -> float:
    """How far the gradient of ``x`` by itself is from the given one: the way to ``x`` is no part of it."""
    D = (softmax(x @ parameters[0].T + parameters[1], axis=1) - one_hot) / len(x)
    given = np.column_stack(gradient)
    return float(np.linalg.norm(np.column_stack([D.T @ x, D.sum(axis=0)]) - given) / np.linalg.norm(given))
