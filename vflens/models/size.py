"""What a part of a model takes, before it is built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Size:
    """Parameters of a model, and at most so many numbers per row in the outputs of its layers."""

    parameters: int = 0
    outputs: int = 0

    def __add__(self, other: Size) -> Size:
        """Both models."""
        return Size(self.parameters + other.parameters, self.outputs + other.outputs)


def fully_connected(widths: Sequence[int]) -> Size:
    """Linear layers, each with what is between it and the next: two more of its size at most."""
    return Size(sum((a + 1) * b for a, b in pairwise(widths)), 3 * sum(widths[1:]))
