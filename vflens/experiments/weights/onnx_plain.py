"""The part of an ONNX graph that makes its scores, in plain operators.

skl2onnx writes a label beside them, maps of probabilities (ZipMap), scalers and whole linear classifiers.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from vflens.errors import DataError
from vflens.experiments.weights.numbers import checked_numbers
from vflens.types import Array

_FLOATS = (1, 11)  # TensorProto.FLOAT and DOUBLE
_LABELS = (6, 7, 8)  # INT32, INT64 and STRING
_ENDS = {b"NONE": "", b"SOFTMAX": "Softmax", b"LOGISTIC": "Sigmoid"}


def score_outputs(graph: Any) -> list[str]:
    """The names of its outputs that are no labels."""
    return [one.name for one in graph.output if one.type.tensor_type.elem_type not in _LABELS]


def nodes_before(graph: Any, output: str) -> list[Any]:
    """Those on which ``output`` depends, in their order."""
    needed, kept = {output}, []
    for node in reversed(graph.node):
        if needed & set(node.output):
            needed |= set(node.input)
            kept.append(node)
    return kept[::-1]


class Plain:
    """Nodes of ``file`` in plain operators; matrices join ``constants``, a tensor can have another's name."""

    def __init__(self, file: Path, constants: dict[str, Array]) -> None:
        self.file, self.constants = file, constants
        self._same, self._minus, self._shares = dict[str, str](), dict[str, str](), set[str]()

    def name(self, tensor: str) -> str:
        """The one that holds the same numbers."""
        return self._same.get(tensor, tensor)

    def nodes(self, node: Any) -> Iterator[Any]:
        """What does the same as ``node``: none, if it changes no number."""
        from onnx import NodeProto, helper

        inputs, given = [self.name(tensor) for tensor in node.input], {}
        for attribute in node.attribute:
            given[attribute.name] = helper.get_attribute_value(attribute)
        if self._is_same(node.op_type, inputs, given):
            self._same[node.output[0]] = inputs[-1]
        elif node.op_type == "Sub" and np.all(self.constants.get(inputs[0], np.zeros(1)) == 1):
            self._minus[node.output[0]] = inputs[1]
        elif node.op_type in ("Scaler", "LinearClassifier"):
            yield from self._linear(node, inputs[0], given)
        else:
            copy = NodeProto()
            copy.CopyFrom(node)
            copy.input[:] = inputs
            self._shares |= set(node.output) if node.op_type == "Softmax" else set()
            yield copy

    def _is_same(self, op: str, inputs: list[str], given: dict[str, Any]) -> bool:
        """Whether a node hands on its last input: of two classes 1 − p and p are one number."""
        return (
            op in ("Identity", "ZipMap")
            or (op == "Cast" and given.get("to") in _FLOATS)
            or (op == "Normalizer" and given.get("norm") == b"L1" and inputs[0] in self._shares)
            or (op == "Concat" and len(inputs) == 2 and self._minus.get(inputs[0]) == inputs[1])
        )

    def _linear(self, node: Any, source: str, given: dict[str, Any]) -> Iterator[Any]:
        from onnx import helper

        at, end = node.output[-1], ""
        if node.op_type == "Scaler":
            scale = np.array(given["scale"], np.float64)
            matrix, bias = np.diag(scale), -np.array(given["offset"], np.float64) * scale
        else:
            bias = np.array(given["intercepts"], np.float64)
            end = _ENDS.get(given.get("post_transform", b"NONE"), "?")
            matrix = np.array(given["coefficients"], np.float64).reshape(len(bias), -1).T
            if end == "Sigmoid" and len(bias) == 2 and np.array_equal(matrix[:, 0], -matrix[:, 1]):
                matrix, bias = matrix[:, 1:], bias[1:]  # both say the same
            self._shares |= {at} if end == "Softmax" else set()
        if end == "?":
            end = given["post_transform"].decode()
            raise DataError(
                f"{self.file}: LinearClassifier has post_transform {end}: export softmax or sigmoid"
            )
        names = [f"{at}.{part}" for part in ("matrix", "bias", "product", "sum")]
        for name, array in zip(names, (matrix, bias), strict=False):
            self.constants[name] = checked_numbers(self.file, name, array)
        yield helper.make_node("MatMul", [source, names[0]], [names[2]])
        yield helper.make_node("Add", names[2:0:-1], [names[3] if end else at])
        if end:
            yield helper.make_node(end, [names[3]], [at])
