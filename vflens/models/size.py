"""What a part of a model takes, before it is built."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    """Parameters of a model, and at most so many numbers per row in the outputs of its layers."""

    parameters: int = 0
    outputs: int = 0

    def __add__(self, other: Size) -> Size:
        """Both models."""
        return Size(self.parameters + other.parameters, self.outputs + other.outputs)
