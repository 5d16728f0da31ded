"""The input of a linear layer from the gradients in its weights and its bias.

z = W x + b and g = ∂ℓ/∂z give ∂ℓ/∂W = g xᵀ and ∂ℓ/∂b = g, whatever follows the layer (Phong et al., 2018,
§3; Geiping et al., 2020, proposition 3.1). Behind a ReLU a unit has no gradient of the rows at which it is 0:
one that is above 0 at a single row of a batch shows that row (Boenisch et al., 2023, §4).
"""

import numpy as np

from vflens.array import Array


def layer_input(weight: Array, bias: Array) -> tuple[Array, Array]:
    """The input x (…, d) = ∇Wᵀ∇b/‖∇b‖², and the misfit (…) ‖∇W − ∇b xᵀ‖/‖∇W‖.

    Of one row's gradient x is exact and the misfit is 0, up to rounding. Of several rows x is Σ w_i x_i with
    weights w_i = g_iᵀ∇b/‖∇b‖² of sum 1, and the misfit shows that they are several. An input of 0 has no ∇W:
    its misfit is 0.

    Args:
        weight: ∇W (…, m, d).
        bias: ∇b (…, m).

    Raises:
        ValueError: a ∇b is 0, so that the loss does not depend on this layer.
    """
    squares = (bias**2).sum(axis=-1)
    if not (squares > 0).all():
        raise ValueError("the gradient in the bias is 0: the loss does not depend on this layer's input")
    x = np.einsum("...md,...m->...d", weight, bias) / squares[..., None]
    left = np.linalg.norm(weight - bias[..., None] * x[..., None, :], axis=(-2, -1))
    size = np.linalg.norm(weight, axis=(-2, -1))
    return x, left / np.where(size > 0, size, 1)


def single_rows(weight: Array, bias: Array, rows: int, *, tolerance: float = 1e-4) -> Array:
    """Rows of a batch that two units or more show alike (r, d), r ≤ ``rows``, the most often shown first.

    A unit j shows ∇W_j/∇b_j: the row at which alone it has a gradient, else a weighted mean of several rows.
    Two such means agree by accident only, but with two classes behind one hidden layer: there units with a
    gradient at the same rows show one mean. Rows of one label and almost one probability come near to that.
    Means outside the box [0, 1] are left out.

    Args:
        weight: ∇W (m, d).
        bias: ∇b (m,).
        rows: n, how many the batch has.
        tolerance: the largest difference of two units that count as alike, in units of the box.
    """
    from scipy.spatial.distance import cdist  # slow to load, for few attacks

    sure = np.argsort(-np.abs(bias), kind="stable")  # a small ∇b magnifies rounding
    sure = sure[np.abs(bias[sure]) > 1e-6 * np.abs(bias).max(initial=0.0)]
    shown = weight[sure] / bias[sure, None]
    shown = shown[((shown >= -tolerance) & (shown <= 1 + tolerance)).all(axis=1)]
    alike = cdist(shown, shown, "chebyshev") <= tolerance
    found: list[Array] = []
    while len(found) < rows and alike.sum(axis=1).max(initial=0) > 1:
        best = int(alike.sum(axis=1).argmax())
        members = np.flatnonzero(alike[best])
        found.append(shown[members[0]])
        alike[members], alike[:, members] = False, False
    return np.array(found).reshape(-1, weight.shape[1])
