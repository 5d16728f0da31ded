"""Inputs of a layer behind a passport, from the gradients of rows that share its keys.

FedAdOb's Theorem 1 bounds a guess of the keys
(:func:`vflens.numerics.theory.fedadob.log_recovery_probability`). Rows of one batch share them: an adversary
who sees each row's gradient and knows the inputs' mean does not guess.

In the theorem's setting, H = W x + W s, a row's gradients give x + s
(:func:`vflens.numerics.gradients.first_layer.layer_input`), and their mean gives s. A passport of FedAdOb has
H = γ ⊙ W x + β, γ and β functions of W s^γ and W s^β, and no gradient in a bias. By the chain rule

    ∂ℓ/∂W = (g ⊙ γ) xᵀ + p s^γᵀ + q s^βᵀ,    g = ∂ℓ/∂H,

with vectors p and q that depend on the row. So all rows' gradients share the plane of the keys. Beside it
they are (g ⊙ γ)(Π x)ᵀ, Π the projection on its complement, which gives all Π x up to one factor.
"""

from dataclasses import dataclass

import numpy as np

from vflens.array import Array
from vflens.words import counted


@dataclass(frozen=True, eq=False)
class Unkeyed:
    """The inputs ``x`` (n, d), and γ as ``scale`` (m,).

    Beside the ``plane`` of the keys, orthonormal (2, d), x is exact up to one factor for all rows, which the
    inputs' mean gives; in the plane it is that mean.

    ``shared``, at most 1: the share of all rows' gradients in which the plane lies; 1 up to rounding if they
    have one pair of keys. ``unique``: the same of the best third direction; where it reaches 1 too, the plane
    is not determined.
    """

    x: Array
    plane: Array
    scale: Array
    shared: float
    unique: float


def behind_passport(weight: Array, output: Array, mean: Array) -> Unkeyed:
    """The inputs of a linear layer behind a passport, from n ≥ 3 rows' own gradients under one pair of keys.

    The passport's autoencoder needs two hidden units, as it has from 8 outputs on: with one, p and q are
    parallel, and the gradients share no plane.

    Args:
        weight: ∂ℓ_i/∂W (n, m, d), d > 3.
        output: ∂ℓ_i/∂H (n, m), which the gradients of the layer behind give.
        mean: that of the inputs (d,), known from elsewhere.

    Raises:
        ValueError: fewer than three rows or four columns.
    """
    if len(weight) < 3 or weight.shape[2] < 4:
        raise ValueError(
            f"{counted(len(weight), 'row')} of {counted(weight.shape[2], 'column')}: give three rows of "
            "four at least"
        )
    spans = np.linalg.svd(weight, full_matrices=False)[2][:, :3].reshape(-1, weight.shape[2])
    _, sizes, directions = np.linalg.svd(spans, full_matrices=False)
    plane, shares = directions[:2], sizes**2 / len(weight)
    beside = weight - weight @ plane.T @ plane
    _, _, right = np.linalg.svd(beside, full_matrices=False)
    along = np.einsum("nmd,nd->nm", beside, right[:, 0])
    lengths, scale = _factors(along, output)
    z, beyond = lengths[:, None] * right[:, 0], mean - plane.T @ (plane @ mean)
    middle = z.mean(axis=0)
    factor = (middle @ beyond) / (middle @ middle)
    return Unkeyed(
        factor * z + mean - beyond, plane, scale / factor, float(shares[1]), unique=float(shares[2])
    )


def _factors(values: Array, weights: Array) -> tuple[Array, Array]:
    """Those a (n,) and b (m,) of least Σ (values_ij − a_i·weights_ij·b_j)², up to a factor, by turns.

    Without weights of 0 the first turn is exact where a_i b_j fits.
    """
    squares = weights**2
    ratios = values * weights / (squares + 1e-12 * squares.max())
    b = np.linalg.svd(ratios, full_matrices=False)[2][0]
    for _ in range(100):
        a = (values * weights * b).sum(axis=1) / np.maximum((squares * b**2).sum(axis=1), 1e-300)
        turned = (values * weights * a[:, None]).sum(axis=0)
        b = turned / np.maximum((squares * a[:, None] ** 2).sum(axis=0), 1e-300)
        b /= np.linalg.norm(b)
    a = (values * weights * b).sum(axis=1) / np.maximum((squares * b**2).sum(axis=1), 1e-300)
    return a, b
