"""Networks of matrices, sums, ReLU, sigmoid and softmax, as their steps."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from vflens.types import Array


@dataclass(frozen=True)
class Operation:
    """``output`` = ``op`` of ``inputs``: MatMul, Add, Relu, Sigmoid or Softmax of constants and earlier
    outputs.
    """

    op: str
    inputs: tuple[str, ...]
    output: str


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph from its ``width`` inputs (n, D) to ``outputs`` numbers per row.

    ``steps`` are in their order and lack a last Softmax or Sigmoid, which is the ``end``; ``constants`` are
    float64, ``start`` is the name of the inputs.
    """

    steps: tuple[Operation, ...]
    constants: Mapping[str, Array]
    start: str
    end: str
    width: int
    outputs: int
    names: tuple[str, ...] = ()

    @property
    def classes(self) -> int:
        """The number of classes; 2 for one output."""
        return max(2, self.outputs)

    @property
    def layers(self) -> int:
        """The number of matrices."""
        return sum(step.op == "MatMul" for step in self.steps)

    @property
    def numbers(self) -> int:
        """How many all steps make of one row, at most: a step can repeat what it gets for each column."""
        widths = {name: array.shape[-1] if array.ndim else 1 for name, array in self.constants.items()}
        widths[self.start] = self.width
        for step in self.steps:
            of_inputs = [widths[name] for name in step.inputs]
            widths[step.output] = of_inputs[-1] if step.op == "MatMul" else max(of_inputs)
        return sum(widths[step.output] for step in self.steps)

    def of_arrays(self, x: Array) -> Array:
        """The outputs (n, w) of ``x`` (n, D), before the end.

        Raises:
            ValueError: shapes that do not fit.
        """
        values = {**self.constants, self.start: x}
        for step in self.steps:
            values[step.output] = _OPERATIONS[step.op](*(values[name] for name in step.inputs))
        last: Array = values[self.steps[-1].output]
        return last


def _softmax(x: Array) -> Array:
    raised = np.exp(x - x.max(axis=-1, keepdims=True))
    shares: Array = raised / raised.sum(axis=-1, keepdims=True)
    return shares


_OPERATIONS: Mapping[str, Any] = {
    "MatMul": np.matmul,
    "Add": np.add,
    "Relu": lambda x: np.maximum(x, 0),
    "Sigmoid": lambda x: 0.5 * (1 + np.tanh(x / 2)),
    "Softmax": _softmax,
}
