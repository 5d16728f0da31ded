"""Send only the largest entries of every row; the rest stay at the sender.

A baseline of FedAdOb (§6), on the embeddings or gradients that the party sends.
"""

from typing import ClassVar

from pydantic import Field

from vflens.numerics.updates import largest_numbers
from vflens.plugins.defense import Context, Defense
from vflens.types import Array


class Sparsification(Defense):
    """In every row of w numbers the ⌈kept·w⌉ of largest magnitude stay, the others become 0.

    Of equal magnitudes the first stay.
    """

    unclaimed: ClassVar[str] = "what stays is exact"

    kept: float = Field(0.1, gt=0, le=1, description="share of every row that is kept")

    def on_embedding(self, h: Array, ctx: Context) -> Array:
        """Sparse rows (n, w)."""
        return largest_numbers(h, self.kept)

    def on_gradient(self, g: Array, ctx: Context) -> Array:
        """Sparse rows (n, w)."""
        return largest_numbers(g, self.kept)

    def on_update(self, u: Array, ctx: Context) -> Array:
        """A sparse update (1, m): all of it is one row."""
        return largest_numbers(u, self.kept)
