"""Send only the largest entries of every row; the rest stay at the sender.

A baseline of FedAdOb (§6), on the embeddings or gradients that the party sends.
"""

from __future__ import annotations

import math

import numpy as np
from pydantic import Field

from vflens.plugins.defense import Context, Defense
from vflens.types import Array


class Sparsification(Defense):
    """Of every row of w numbers the ⌈kept·w⌉ of largest magnitude stay, the others become 0.

    Of equal magnitudes the first stay. Nothing is claimed: what stays is exact.
    """

    kept: float = Field(0.1, gt=0, le=1, description="share of every row that is kept")

    def on_embedding(self, h: Array, ctx: Context) -> Array:
        """Sparse rows (n, w)."""
        return self._sparse(h)

    def on_gradient(self, g: Array, ctx: Context) -> Array:
        """Sparse rows (n, w)."""
        return self._sparse(g)

    def _sparse(self, rows: Array) -> Array:
        count = math.ceil(self.kept * rows.shape[1])
        largest = np.argsort(-np.abs(rows), axis=1, kind="stable")[:, :count]
        sparse = np.zeros_like(rows)
        np.put_along_axis(sparse, largest, np.take_along_axis(rows, largest, axis=1), axis=1)
        return sparse
