"""White-box gradient inversion behind a passport by an attacker who knows the mean of the columns.

FedAdOb's Theorem 1 counts guesses of the keys that are independent of all that was observed. One pair of keys
serves all rows of an exchange: their gradients share the plane of the keys, and show the rows beside it
(:mod:`vflens.numerics.gradients.passports`).
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from torch import nn

from vflens.attacks.helpers.gradients.granted import GradientsAttack, client_network
from vflens.attacks.helpers.networks.inversion import array
from vflens.errors import KnowledgeError
from vflens.numerics.gradients.first_layer import layer_input
from vflens.numerics.gradients.passports import behind_passport
from vflens.plugins.views.horizontal import ServerView
from vflens.types import Array, Estimate, Knowledge, RowStatus, statuses


class MomentGradientInversion(GradientsAttack):
    """Closed forms for a passport around a bottom model of one linear layer, behind which stand a ReLU and a
    linear layer: the gradients of the latter give h and ∂ℓ/∂H.
    """

    needs: ClassVar[frozenset[Knowledge]] = GradientsAttack.needs | {Knowledge.MOMENTS}
    knows: ClassVar[frozenset[str]] = frozenset({"passport"})

    def check_whole(self, model: nn.Module) -> None:
        """See :meth:`vflens.plugins.attack.Attack.check_whole`: the layers that the closed forms read."""
        first, layers = (list(model.get_submodule(part).children()) for part in ("bottom", "top"))
        kinds = [type(layer) for layer in (*first, *layers[:2])]
        if kinds != [nn.Linear, nn.ReLU, nn.Linear] or len(first) > 1:
            raise KnowledgeError("wgi_moments needs an 'mlp' whose bottom model is one layer")

    def reconstruct(self, view: ServerView, *, rng: np.random.Generator) -> Estimate:
        """Columns (N, d); a row without a gradient is the mean, and ``ambiguous``. See
        :meth:`vflens.plugins.attack.Attack.reconstruct`.

        Raises:
            KnowledgeError: the model is another, or too few rows were granted.
        """
        view.architecture()  # softmax regression has no layer behind
        model, mean = client_network(view), view.moments().mean
        self.check_whole(model)
        gradients = {name: g.astype(np.float64) for name, g in view.gradients().items()}
        output = _output_gradients(model, gradients)
        weight, bias = gradients["bottom.0.weight"], gradients.get("bottom.0.bias")
        shown = (output if bias is None else bias).any(axis=1)
        values, status = np.tile(mean, (len(weight), 1)), statuses(len(weight), RowStatus.AMBIGUOUS)
        try:
            if bias is None:  # a passport has its place
                values[shown] = behind_passport(weight[shown], output[shown], mean).x
            else:
                values[shown], _ = layer_input(weight[shown], bias[shown])
        except ValueError as error:
            raise KnowledgeError(str(error)) from None
        status[shown] = RowStatus.OK
        return Estimate(view.target, view.rows, values, status)


def _output_gradients(model: nn.Module, gradients: Mapping[str, Array]) -> Array:
    """∂ℓ/∂H (N, m) of each row, H the embedding: (Vᵀ ∂ℓ/∂c) ⊙ 1[h > 0], V and c those of the layer behind."""
    behind = gradients["top.1.bias"]
    seen = (behind != 0).any(axis=1)
    h = np.zeros((len(behind), gradients["top.1.weight"].shape[2]))
    h[seen] = layer_input(gradients["top.1.weight"][seen], behind[seen])[0]
    weight = array(model.get_parameter("top.1.weight"))
    found: Array = (behind @ weight) * (h > 1e-9 * h.max(initial=0.0))
    return found
