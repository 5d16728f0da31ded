"""Send only the largest numbers of an update; the rest is added to the update of the next round.

Gradient compression as FedAdOb cites it (§2): Lin et al. (2018), "deep gradient compression", in its simplest
form, Stich et al. (2018), algorithm 1.
"""

from typing import ClassVar

from pydantic import Field

from vflens.numerics.updates import sparse_update
from vflens.plugins.defense import Context, Defense
from vflens.types import Array


class ErrorFeedback(Defense):
    """It sends the ⌈kept·m⌉ numbers of largest magnitude of an update and earlier rounds' rest, m numbers.

    What is not sent stays at the client until a later round: over all rounds no number is lost.
    """

    unclaimed: ClassVar[str] = "what is sent is exact"

    kept: float = Field(0.1, gt=0, le=1, description="share of every update that is sent")

    def on_update(self, u: Array, ctx: Context) -> Array:
        """A sparse update (1, m)."""
        sent, left = sparse_update({"left": u}, self.kept, ctx.memory or None)
        ctx.memory.update(left)
        return sent["left"]
