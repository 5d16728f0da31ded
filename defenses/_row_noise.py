"""Noise of a fixed size on every row that a party sends."""

from abc import abstractmethod

from vflens.plugins.defense import Context, Defense
from vflens.types import Array, Phase


class RowNoise(Defense):
    """Noise of one size on all rows that a party sends.

    At a passive party it acts on embeddings, at the active party on gradients (and on the logits that it
    sends in softmax regression), at a client on the whole update. A row's gradient is that of its own loss,
    as a client grants it. In training it is a part of the mean loss of n rows, and so n times smaller: the
    settings mean the same at every batch size.
    """

    def on_embedding(self, h: Array, ctx: Context) -> Array:
        """Clipped, noisy rows (n, w)."""
        return self._noisy(h, ctx)

    def on_gradient(self, g: Array, ctx: Context) -> Array:
        """Clipped, noisy rows (n, w)."""
        n = max(len(g), 1) if ctx.exchange.phase is Phase.TRAIN else 1
        return self._noisy(n * g, ctx) / n

    def on_update(self, u: Array, ctx: Context) -> Array:
        """A clipped, noisy update (1, m): all of it is one row."""
        return self._noisy(u, ctx)

    @abstractmethod
    def _noisy(self, rows: Array, ctx: Context) -> Array:
        """``rows`` (n, w), each clipped and under noise of its own."""
