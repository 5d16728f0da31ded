"""The adversary's own top model, as it gives predictions."""

from collections.abc import Callable

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
        KnowledgeError: as :class:`OwnTop`; the attack did not declare its own features; the party has no
            registered top model.
    """
    model = OwnTop(view)
    from_arrays(model, view.own_network())
    model.eval().requires_grad_(False)
    own = torch.zeros((0, 0)) if model.bottom is None else model.beside(features())
    return lambda h, places: model(h, None if model.bottom is None else own[places])


class OwnTop(nn.Module):
    """New "top" and "bottom" models of the active party, in float64; without columns of its own no bottom.

    Raises:
        KnowledgeError: other passive parties' embeddings would be needed too.
    """

    def __init__(self, view: AdversaryView) -> None:
        super().__init__()
        if len(others := view.widths()) > 1:
            raise KnowledgeError(
                f"learning through the own top takes one passive party, there are {', '.join(others)}: "
                "learn from aligned embeddings"
            )
        network, columns = view.architecture(), view.own_columns()
        widths = [network.embedding_width(c) for c in (view.metadata(), columns) if c]
        combined = network.combined_width(widths, view.n_classes)
        self.top = top(network, combined, view.n_classes, [view.metadata(), columns])
        self.bottom = bottom(network, columns) if columns else None
        self._concatenates = network.concatenates
        self.to(placed(view.device), torch.float64)

    def beside(self, features: Array) -> Tensor:
        """The own embeddings (n, w) of the own columns (n, d)."""
        assert self.bottom is not None, "a party without columns has no embeddings"
        found: Tensor = self.bottom(torch.tensor(features, device=next(self.parameters()).device))
        return found

    def forward(self, h: Tensor, own: Tensor | None) -> Tensor:
        """The logits (n, k) of the target's embeddings (n, w) and the party's own."""
        if own is not None:
            h = torch.cat([h, own], dim=1) if self._concatenates else h + own
        logits: Tensor = self.top(h)
        return logits
