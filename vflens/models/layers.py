"""Layers of a network, described without torch: what each makes of a row, and what it holds.

The coordinator has no torch, and a model's memory is checked before it is built.
:mod:`vflens.models.networks.layers` builds them.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from vflens.models.size import Size

#: Of one row: (numbers,), or (channels, height, width) for an image.
Shape: TypeAlias = tuple[int, ...]


class Layer(ABC):
    """What a layer is before it is built."""

    @abstractmethod
    def shape(self, given: Shape) -> Shape:
        """The shape of the output for a row of shape ``given``; a side below 1: the image is too small."""

    def size(self, given: Shape) -> Size:
        """What it holds, and the numbers that it gives per row."""
        return Size(self.parameters(given), prod(self.shape(given)))

    def parameters(self, given: Shape) -> int:
        """How many it learns."""
        return 0


@dataclass(frozen=True)
class Linear(Layer):
    """A fully connected layer with a bias; an image is flattened before it."""

    outputs: int

    def shape(self, given: Shape) -> Shape:
        """(outputs,)."""
        return (self.outputs,)

    def parameters(self, given: Shape) -> int:
        """Weight and bias."""
        return (prod(given) + 1) * self.outputs


@dataclass(frozen=True)
class Convolution(Layer):
    """A convolution with a square kernel."""

    outputs: int
    kernel: int
    padding: int = 0
    stride: int = 1
    bias: bool = True

    def shape(self, given: Shape) -> Shape:
        """(outputs, height, width)."""
        sides = ((side + 2 * self.padding - self.kernel) // self.stride + 1 for side in given[1:])
        return (self.outputs, *sides)

    def parameters(self, given: Shape) -> int:
        """Weight, and a bias if it has one."""
        return (given[0] * self.kernel**2 + self.bias) * self.outputs


class _SameShape(Layer):
    """A layer that keeps the shape."""

    def shape(self, given: Shape) -> Shape:
        """The input's shape."""
        return given


@dataclass(frozen=True)
class ReLU(_SameShape):
    """The positive part."""


@dataclass(frozen=True)
class Dropout(_SameShape):
    """In training, ``share`` of the numbers become 0."""

    share: float


@dataclass(frozen=True)
class BatchNorm(_SameShape):
    """Each channel standardised, then scaled and shifted."""

    def parameters(self, given: Shape) -> int:
        """Scale and shift of each channel; its running mean and variance are not learned."""
        return 2 * given[0]


@dataclass(frozen=True)
class Cross(_SameShape):
    """Cross layers of a deep & cross network: x_{l+1} = x_0·(w_l·x_l) + b_l + x_l (Wang et al., 2017)."""

    layers: int

    def parameters(self, given: Shape) -> int:
        """w_l and b_l."""
        return 2 * self.layers * given[0]

    def size(self, given: Shape) -> Size:
        """Each layer's output counts."""
        return Size(self.parameters(given), self.layers * given[0])


@dataclass(frozen=True)
class MaxPool(Layer):
    """The largest of each 2 by 2 places."""

    def shape(self, given: Shape) -> Shape:
        """Half of each side."""
        return (given[0], given[1] // 2, given[2] // 2)


@dataclass(frozen=True)
class AveragePool(Layer):
    """The mean over all places."""

    def shape(self, given: Shape) -> Shape:
        """(channels,)."""
        return (given[0],)


@dataclass(frozen=True)
class Residual(Layer):
    """What ``branch`` makes of the input, plus the input behind ``shortcut``."""

    branch: tuple[Layer, ...]
    shortcut: tuple[Layer, ...] = ()

    def shape(self, given: Shape) -> Shape:
        """That of the branch."""
        return shape_of(self.branch, given)

    def size(self, given: Shape) -> Size:
        """Branch, shortcut and sum."""
        return size_of(self.branch, given) + size_of(self.shortcut, given) + Size(0, prod(self.shape(given)))


@dataclass(frozen=True)
class Beside(Layer):
    """``left`` and ``right`` side by side: both of the whole input, or ``right`` of its last ``deep`` numbers
    and ``left`` of the others.
    """

    left: tuple[Layer, ...]
    right: tuple[Layer, ...]
    deep: int = 0

    def inputs(self, given: Shape) -> tuple[Shape, Shape]:
        """Shapes of what ``left`` and ``right`` read."""
        return ((given[0] - self.deep,), (self.deep,)) if self.deep else (given, given)

    def shape(self, given: Shape) -> Shape:
        """Both outputs, the left one first."""
        left, right = self.inputs(given)
        return (shape_of(self.left, left)[0] + shape_of(self.right, right)[0],)

    def size(self, given: Shape) -> Size:
        """Both, and their numbers side by side."""
        left, right = self.inputs(given)
        return size_of(self.left, left) + size_of(self.right, right) + Size(0, prod(self.shape(given)))


def inputs_of(layers: Sequence[Layer], given: Shape) -> Iterator[tuple[Layer, Shape]]:
    """Each of ``layers`` with the shape that it receives, where the first receives ``given``."""
    for layer in layers:
        yield layer, given
        given = layer.shape(given)


def shape_of(layers: Sequence[Layer], given: Shape) -> Shape:
    """The shape behind all ``layers``."""
    for layer in layers:
        given = layer.shape(given)
    return given


def size_of(layers: Sequence[Layer], given: Shape) -> Size:
    """What ``layers`` take together."""
    return sum((layer.size(shape) for layer, shape in inputs_of(layers, given)), Size())


def has_batch_norm(layers: Sequence[Layer]) -> bool:
    """Whether one of ``layers``, or of those inside them, is a batch norm."""
    return any(
        isinstance(layer, BatchNorm)
        or (isinstance(layer, Residual) and has_batch_norm((*layer.branch, *layer.shortcut)))
        for layer in layers
    )
