"""Attacks in the server on granted gradients: of each row's own loss, in all parameters of its client."""

from collections.abc import Mapping
from typing import ClassVar

from torch import nn

from vflens.attacks.helpers.gradients.rounds import known_network
from vflens.attacks.helpers.gradients.whole import last_bias
from vflens.numerics.gradients.labels import row_label
from vflens.plugins.attack import Attack
from vflens.plugins.views.horizontal import ServerView
from vflens.types import Array, Knowledge, Phase, Setting


class GradientsAttack(Attack):
    """Reads the gradients that a client granted of some training rows, at its last parameters."""

    needs: ClassVar[frozenset[Knowledge]] = frozenset(
        {Knowledge.GRADIENTS, Knowledge.PARAMETERS, Knowledge.ARCHITECTURE, Knowledge.METADATA}
    )
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN, Phase.DISCLOSE})
    estimated_rows: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN})
    settings: ClassVar[frozenset[Setting]] = frozenset({Setting.HORIZONTAL})
    rowwise: ClassVar[bool] = False


def client_network(view: ServerView) -> nn.Module:
    """The client's whole last model: what it shares, and the bottom model that it granted where it keeps one.

    Raises:
        KnowledgeError: it keeps one and did not grant it.
    """
    shared = dict(view.parameters(view.rounds))
    if all(name.startswith("top.") for name in shared):
        shared |= {f"bottom.{name}": array for name, array in view.target_network().items()}
    return known_network(view, shared)


def restored(model: nn.Module, gradients: Mapping[str, Array]) -> Array:
    """The label int64 (N,) of each row."""
    return row_label(gradients[last_bias(model)])
