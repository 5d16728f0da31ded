"""The adversary's own top model, as it gives predictions."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from vflens.errors import KnowledgeError
from vflens.models.networks.architectures import bottom, top
from vflens.models.networks.device import placed
from vflens.models.networks.parameters import from_arrays
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array


def own_top(view: AdversaryView, rows: Array) -> Callable[[Tensor, Array], Tensor]:
    """The logits (n, k) of embeddings (n, w) of the target, and of the places (n,) of their rows in ``rows``;
    see :func:`top_beside`.
    """
    return top_beside(view, lambda: view.own("features", rows))


def top_beside(view: AdversaryView, features: Callable[[], Array]) -> Callable[[Tensor, Array], Tensor]:
    """The logits (n, k) of embeddings (n, w) of the target, and of the places (n,) of their rows in
    ``features()`` (m, d), the adversary's own columns.

    The adversary's own embeddings of these rows stand beside the target's. A passport of its own acts with
    the key of its predictions.

    Raises:
        KnowledgeError: other passive parties' embeddings would be needed too; the attack did not declare its
            own features; the party has no registered top model.
    """
    if len(view.widths()) > 1:
        raise KnowledgeError(
            f"learning through the own top takes one passive party, there are {', '.join(view.widths())}: "
            "learn from aligned embeddings"
        )
    network, columns, arrays = view.architecture(), view.own_columns(), view.own_network()
    widths = [network.embedding_width(c) for c in (view.metadata(), columns) if c]
    head = top(
        network,
        network.combined_width(widths, view.n_classes),
        view.n_classes,
        [view.metadata(), columns],
    )
    head = _taken(head, arrays, "top.", view.device)
    if not columns:
        return lambda h, places: head(h)
    own_bottom = _taken(bottom(network, columns), arrays, "bottom.", view.device)
    with torch.no_grad():
        own = own_bottom(torch.tensor(features(), device=placed(view.device)))
    if network.concatenates:
        return lambda h, places: head(torch.cat([h, own[places]], dim=1))
    return lambda h, places: head(h + own[places])


def _taken(module: nn.Module, arrays: Mapping[str, Array], part: str, device: str) -> nn.Module:
    """``module`` in float64 with the ``arrays`` of ``part``, as it gives predictions and learns nothing."""
    from_arrays(module, {n.removeprefix(part): a for n, a in arrays.items() if n.startswith(part)})
    return module.to(placed(device), torch.float64).eval().requires_grad_(False)
