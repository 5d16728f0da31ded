"""Leave the features of a representation that carry most of the input out of it.

After Soteria (Sun et al., 2021), which prunes the representation that a client's gradients of its fully
connected layers are computed from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from vflens.plugins.defense import Context, Defense
from vflens.types import Role

if TYPE_CHECKING:
    from torch.nn import Module


class Soteria(Defense):
    """In every row's representation h of w features the ⌊share·w⌋ of largest |h_j|/‖∂h_j/∂x‖ become 0.

    At a passive party h is the embedding that leaves, also of prediction rows; at a client what its top model
    reads in training.
    """

    unclaimed: ClassVar[str] = "the other features stay exact"
    bottom_only: ClassVar[bool] = True

    share: float = Field(0.1, gt=0, lt=1, description="share of the features of a row that become 0")

    def wrap_model(self, m: Module, ctx: Context) -> Module:
        """A bottom model that prunes what it gives."""
        from vflens.defenses._soteria import Pruned  # torch

        return Pruned(m, self.share, training_only=ctx.owner.role is Role.CLIENT)
