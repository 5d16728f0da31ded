"""Several owners of one defence whose rows go through it as one array: it costs them little more than one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vflens.plugins.defense import Context
from vflens.types import Array


class Together:
    """The ``contexts`` of one exchange of several owners, of as many rows each, for a hook that asks for
    nothing but :meth:`draw` and treats each row by itself.
    """

    def __init__(self, contexts: Sequence[Context]) -> None:
        self.exchange, self._rows = contexts[0].exchange, sum(len(c.rows) for c in contexts)
        self.bit_generator = self  # of itself as a generator
        self._sources = [context.stream().bit_generator for context in contexts]

    def draw(self, sample: Callable[[Any, int], Array]) -> Array:
        """Noise (n, …) of all rows, of each owner that of its own context."""
        return sample(self, self._rows)

    def random_raw(self, size: int) -> Array:
        """Words uint64 (size,), as many of each owner, in order."""
        return np.concatenate([source.random_raw(size // len(self._sources)) for source in self._sources])
