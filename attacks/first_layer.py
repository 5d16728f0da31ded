"""Rows in closed form from the gradient of the layer that reads them, which has a bias.

One row follows from ∇W = g xᵀ and ∇b = g (Phong et al., 2018; Geiping et al., 2020). Of a batch behind ReLU
follows every row that has units of its own (Boenisch et al., 2023).
"""

import numpy as np
from torch import nn

from vflens.attacks.helpers.gradients.rounds import RoundAttack, known_network
from vflens.attacks.helpers.gradients.whole import first_linear
from vflens.errors import KnowledgeError
from vflens.numerics.gradients.first_layer import layer_input, single_rows
from vflens.plugins.views.horizontal import ServerView
from vflens.types import Estimate, RowStatus, statuses


class FirstLayer(RoundAttack):
    """Rows that the gradient determines are ``ok``. The others are ``ambiguous``: each is the weighted mean
    of all that the gradient shows.
    """

    def reconstruct(self, view: ServerView, *, rng: np.random.Generator) -> Estimate:
        """Columns (n, d); extra "misfit" (n,): how far ∇W is from that of one row, in its own size.

        Raises:
            KnowledgeError: a convolution reads the columns, or the layer has no gradient in its bias.
        """
        gradient, model = view.gradient(view.round), known_network(view, view.parameters(view.round))
        layer, n = first_linear(model), len(view.rows)
        if layer is None:
            raise KnowledgeError("a convolution reads the columns: first_layer needs a linear layer")
        weight, bias = (gradient[f"{layer}.{name}".lstrip(".")] for name in ("weight", "bias"))
        try:
            mean, misfit = layer_input(weight, bias)
        except ValueError as error:
            raise KnowledgeError(f"{layer or 'the only layer'}: {error}") from None
        found = mean[None]
        if n > 1:  # without a ReLU every unit shows all rows
            relu = any(isinstance(module, nn.ReLU) for module in model.modules())
            found = single_rows(weight, bias, n if relu else 0)
        values, status = np.tile(mean, (n, 1)), statuses(n, RowStatus.AMBIGUOUS)
        values[: len(found)], status[: len(found)] = found, RowStatus.OK
        return Estimate(view.target, view.rows, values, status, extras={"misfit": np.full(n, misfit)})
