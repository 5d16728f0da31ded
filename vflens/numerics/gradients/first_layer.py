"""The input of a linear layer from the gradients in its weights and its bias.

z = W x + b and g = ∂ℓ/∂z give ∂ℓ/∂W = g xᵀ and ∂ℓ/∂b = g, whatever follows the layer (Phong et al., 2018,
§3; Geiping et al., 2020, proposition 3.1).
"""

from __future__ import annotations

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
