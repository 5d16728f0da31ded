"""All rows of a batch, exactly, from the gradient of a first layer with bias behind which a ReLU stands.

SPEAR (Dimitrov et al., NeurIPS 2024): the gradient is of low rank, and its factors are sparse.
"""

from functools import partial
from itertools import pairwise
from typing import ClassVar

import numpy as np
from torch import nn

from vflens.attacks.helpers.gradients.rounds import RoundAttack, known_network
from vflens.attacks.helpers.gradients.whole import first_linear, row_slopes
from vflens.attacks.helpers.networks.inversion import array
from vflens.errors import KnowledgeError
from vflens.numerics.gradients.exact_batch import EXACT, exact_batch
from vflens.plugins.views.horizontal import ServerView
from vflens.types import Array, Estimate, RowStatus, statuses


class ExactInversion(RoundAttack):
    """Rows that a forward and a backward pass prove, to :data:`EXACT`, are ``ok``. Where nothing is proven
    all rows are ``not_converged``, in the middle of the box: a blind guess. Labels are not needed.
    """

    since: ClassVar[str] = "0.3"

    def reconstruct(self, view: ServerView, *, rng: np.random.Generator) -> Estimate:
        """Columns (n, d); extra "misfit" (n,): how far the gradient of the answer is from the one seen, in
        its own size; NaN after several local steps: the forward pass alone proves the rows then. "bound"
        (n,): on the error of a row by rounding; it is ``not_converged`` beyond :data:`EXACT`.

        Raises:
            KnowledgeError: no ReLU stands behind the first linear layer, which has a bias, or the clients
                keep a part of the model to themselves.
        """
        gradient = view.gradient(view.round, several=True)
        model, n = known_network(view, view.parameters(view.round)), len(view.rows)
        layer = _first(model)
        weight, bias = f"{layer}.weight", f"{layer}.bias"
        known = view.steps == 1 and not any(isinstance(m, nn.Dropout) for m in model.modules())
        found = exact_batch(
            (gradient[weight], gradient[bias]),
            (array(model.get_parameter(weight)), array(model.get_parameter(bias))),
            n,
            rng,
            slopes=partial(row_slopes, model, layer, classes=view.n_classes) if known else None,
            behind=_behind(model) if known else None,
        )
        if found is None:
            blind = np.full((n, gradient[weight].shape[1]), 0.5)
            return Estimate(view.target, view.rows, blind, statuses(n, RowStatus.NOT_CONVERGED))
        extras = {"misfit": np.full(n, found.misfit), "bound": found.bound}
        status = statuses(n)
        status[found.bound > EXACT] = RowStatus.NOT_CONVERGED
        return Estimate(view.target, view.rows, found.x, status, extras=extras)


def _first(model: nn.Module) -> str:
    """The name of the linear layer that reads the columns, with a bias and a ReLU behind it.

    Raises:
        KnowledgeError: there is none.
    """
    name, leaves = first_linear(model), [(n, m) for n, m in model.named_modules() if not list(m.children())]
    behind = [after for (n, _), (_, after) in pairwise(leaves) if n == name]
    bias = getattr(model.get_submodule(name or ""), "bias", None)
    if bias is None or not behind or not isinstance(behind[0], nn.ReLU):
        raise KnowledgeError(
            "no ReLU stands behind a first linear layer with a bias: exact_inversion needs an mlp, or dcn"
        )
    return name or ""


def _behind(model: nn.Module) -> Array | None:
    """The only direction (m,) of error signals: one layer of two classes stands behind the ReLU."""
    leaves = [m for m in model.modules() if not list(m.children())]
    last = leaves[-1]
    if len(leaves) != 3 or not isinstance(last, nn.Linear) or last.out_features != 2:
        return None
    weight = array(last.weight)
    return np.asarray(weight[1] - weight[0])
