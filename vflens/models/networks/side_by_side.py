"""Bottom models of several parties as one: each reads its own columns."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class SideBySide(nn.Module):
    """Embeddings side by side: ``parts`` of inputs of these ``widths``, (n, Σ widths) → (n, Σ w)."""

    def __init__(self, parts: Sequence[nn.Module], widths: Sequence[int]) -> None:
        super().__init__()
        self.parts, self._widths = nn.ModuleList(parts), list(widths)

    def forward(self, x: Tensor) -> Tensor:
        """The embeddings of all parts."""
        inputs = torch.split(x, self._widths, dim=1)
        return torch.cat([part(own) for part, own in zip(self.parts, inputs, strict=True)], dim=1)
