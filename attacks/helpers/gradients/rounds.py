"""Attacks in the server on the batch of one round: its gradient, the model at its start, its labels."""

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import nn

from vflens.attacks.helpers.gradients.whole import last_bias, softmax_network, whole_network
from vflens.attacks.helpers.networks.inversion import array, device_of
from vflens.errors import KnowledgeError
from vflens.models.networks.device import placed
from vflens.models.networks.parameters import from_arrays, to_arrays
from vflens.numerics.gradients.labels import batch_labels
from vflens.plugins.attack import Attack
from vflens.plugins.declared import Declared
from vflens.plugins.views.horizontal import ServerView
from vflens.types import Array, Knowledge, Phase, Setting

_DRAWN = 1024  # rows whose mean probability stands for the batch's


def network_of(view: ServerView, parameters: Mapping[str, Array]) -> nn.Module:
    """The whole model with these ``parameters``, in float64, where the server computes; what they leave out
    is as torch's generator draws it.

    Raises:
        ProtocolError: they are those of another architecture.
    """
    if set(parameters) == {"weight", "bias"}:
        return softmax_network(parameters)
    model = whole_network(view.architecture(), view.metadata(), view.n_classes)
    from_arrays(model, {**to_arrays(model.state_dict()), **parameters})
    return model.to(placed(view.device))


def known_network(view: ServerView, parameters: Mapping[str, Array]) -> nn.Module:
    """:func:`network_of`, of which nothing is left out.

    Raises:
        KnowledgeError: the clients keep a part of the model to themselves.
    """
    model = network_of(view, parameters)
    private = sorted(set(model.state_dict()) - set(parameters))
    if private:
        raise KnowledgeError(f"{private[0]!r} stays with {view.target!r}: this attack needs the whole model")
    return model


class RoundAttack(Attack):
    """Estimates the rows that trained in one round, in no order, from the gradient that their update shows.

    One local step of plain gradient descent shows it.
    """

    needs: ClassVar[frozenset[Knowledge]] = frozenset(
        {Knowledge.GRADIENTS, Knowledge.PARAMETERS, Knowledge.ARCHITECTURE, Knowledge.METADATA}
    )
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN})
    estimated_rows: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN})
    settings: ClassVar[frozenset[Setting]] = frozenset({Setting.HORIZONTAL})
    rowwise: ClassVar[bool] = False

    probabilities: Literal["drawn", "granted"] = Field(
        "drawn",
        description="the mean probability of the batch, by which labels are counted: that of rows drawn in "
        "the box, or of granted rows; one row needs none",
    )

    @property
    def unordered(self) -> bool:
        return True

    def declared(self) -> Declared:
        """With ``probabilities = "granted"`` also granted rows."""
        if self.probabilities == "drawn":
            return super().declared()
        granted = self.needs | {Knowledge.AUXILIARY}
        return Declared(granted, self.phases | {Phase.DISCLOSE}, self.estimated_rows)

    def labels(
        self, view: ServerView, model: nn.Module, gradient: Mapping[str, Array], rng: np.random.Generator
    ) -> Array:
        """Those of the batch, ascending int64 (n,), from the ``gradient`` in the bias of the last layer."""
        if self.probabilities == "granted":
            rows = view.auxiliary()[1]
        else:
            rows = rng.random((_DRAWN, len(view.metadata())))
        with torch.no_grad():
            logits = model.eval()(torch.tensor(rows, device=device_of(model)))
        mean = array(torch.softmax(logits, dim=1).mean(dim=0))
        return batch_labels(gradient[last_bias(model)], len(view.rows), mean)
