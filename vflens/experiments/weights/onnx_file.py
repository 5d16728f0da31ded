"""Networks from ONNX files, without its runtime: graphs of Gemm, MatMul, Add, Relu, Sigmoid and Softmax."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from vflens.errors import ConfigError, DataError, install_extra
from vflens.experiments.weights.linear import LinearModel, of_weight
from vflens.experiments.weights.network import Graph, Operation
from vflens.experiments.weights.numbers import checked_numbers
from vflens.experiments.weights.onnx_plain import Plain, nodes_before, score_outputs
from vflens.storage.json_file import in_words
from vflens.types import Array
from vflens.words import counted

_READ = ("Gemm", "MatMul", "Add", "Relu", "Sigmoid", "Softmax")
_INPUTS = {"Gemm": (2, 3), "MatMul": (2,), "Add": (2,)}  # the other operators have one
_MOST_INPUTS = 4096  # the weights of a linear graph are found from as many rows
_MOST_NUMBERS = 1 << 20  # that all steps make of one row
_MOST_PRODUCTS = 1 << 24  # of inputs and these numbers, in the probe of a linear graph
_EXTERNAL = 1  # TensorProto.DataLocation: the numbers lie in another file
_ANEW = "export the model anew, up to its scores and in eval mode"
_OWN = "give the file that XGBoost, LightGBM or CatBoost saves of these trees"


def read_onnx(file: Path) -> Graph | LinearModel:
    """The model in ``file``; one of matrices and sums alone, before a softmax or sigmoid, is linear.

    Raises:
        ConfigError: onnx is not installed.
        DataError: it cannot be read, or its graph has what an audit does not rebuild; the sentence names the
            node or tensor.
    """
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError:
        raise ConfigError(f"{file} needs the package onnx: {install_extra('weights')}") from None
    try:
        graph = onnx.load(str(file), load_external_data=False).graph
    except (DecodeError, OSError, ValueError) as error:
        raise DataError(f"{file} cannot be read as ONNX ({in_words(error)}): {_ANEW}") from error
    read = (tensor for tensor in graph.initializer if tensor.data_type != onnx.TensorProto.STRING)
    constants = {tensor.name: _constant(file, tensor) for tensor in read}
    starts, outputs = [i.name for i in graph.input if i.name not in constants], score_outputs(graph)
    if len(starts) != 1 or len(outputs) != 1:
        raise DataError(
            f"{file} has {counted(len(starts), 'input')} and {counted(len(outputs), 'output')}: give a model "
            "of one matrix of inputs (rows, columns) whose only output, beside labels, are its scores"
        )
    plain = Plain(file, constants)
    try:
        nodes = [one for node in nodes_before(graph, outputs[0]) for one in plain.nodes(node)]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise DataError(f"{file} has an operator of scikit-learn that cannot be read: {_ANEW}") from error
    steps = _steps(file, nodes, constants, starts[0])
    if not steps or steps[-1].output != plain.name(outputs[0]):
        raise DataError(f"{file}: the last node does not make the output {outputs[0]!r}: {_ANEW}")
    return _simplest(file, _shaped(file, steps, constants, starts[0]))


def _constant(file: Path, tensor: Any) -> Array:
    from onnx import numpy_helper

    if tensor.data_location == _EXTERNAL:
        raise DataError(
            f"tensor {tensor.name!r} of {file} lies in another file: save the model with its tensors inside"
        )
    if min(tensor.dims, default=0) < 0:
        raise DataError(
            f"tensor {tensor.name!r} of {file} cannot be read (shape {list(tensor.dims)}): {_ANEW}"
        )
    try:
        array = numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError, OverflowError, MemoryError) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(f"tensor {tensor.name!r} of {file} cannot be read ({reason}): {_ANEW}") from error
    return checked_numbers(file, tensor.name, array)


def _steps(file: Path, nodes: Iterable[Any], constants: dict[str, Array], start: str) -> list[Operation]:
    """The graph's nodes in their order; the matrix of a Gemm joins the ``constants``."""
    known, steps = {start}, list[Operation]()
    for number, node in enumerate(nodes):
        called = f"node {number} ({node.name or node.op_type}) of {file}"
        if node.op_type not in _READ or node.domain not in ("", "ai.onnx"):
            way = _OWN if node.op_type.startswith("TreeEnsemble") else _ANEW
            raise DataError(f"{called} is {node.op_type}, an audit rebuilds {', '.join(_READ)}: {way}")
        inputs = [name for name in node.input if name]
        if len(inputs) not in _INPUTS.get(node.op_type, (1,)) or len(node.output) != 1:
            counts = f"{counted(len(inputs), 'input')} and {counted(len(node.output), 'output')}"
            raise DataError(f"{called} has {counts}: {_ANEW}")
        if unknown := [name for name in inputs if name not in known and name not in constants]:
            raise DataError(
                f"{called} reads {unknown[0]!r}, which no earlier node makes: the graph is a cycle or cut, "
                f"{_ANEW}"
            )
        if node.output[0] in known or node.output[0] in constants:
            raise DataError(f"{called} makes {node.output[0]!r} a second time: {_ANEW}")
        made = _made(called, node, inputs, constants, number)
        steps += made
        known.update(step.output for step in made)
    return steps


def _made(
    called: str, node: Any, inputs: list[str], constants: dict[str, Array], number: int
) -> list[Operation]:
    """The steps of one node."""
    given = {a.name: a for a in node.attribute}
    if node.op_type == "Softmax" and "axis" in given and given["axis"].i not in (-1, 1):
        raise DataError(f"{called} has axis {given['axis'].i}, not that of each row, 1: {_ANEW}")
    if node.op_type in ("Gemm", "MatMul") and (inputs[0] in constants or inputs[1] not in constants):
        raise DataError(f"{called} does not multiply rows by a constant matrix: {_ANEW}")
    matrix = inputs[1:2] if node.op_type in ("Gemm", "MatMul") else []
    if wide := [n for n in inputs if n in constants and not _fits(constants[n], is_matrix=n in matrix)]:
        raise DataError(f"{called} has {wide[0]!r} of shape {constants[wide[0]].shape}: {_ANEW}")
    if node.op_type != "Gemm":
        return [Operation(node.op_type, tuple(inputs), node.output[0])]
    scale = {name: given[name].f if name in given else 1.0 for name in ("alpha", "beta")}
    turned = {name: name in given and bool(given[name].i) for name in ("transA", "transB")}
    if turned["transA"] or any(s != 1 for s in scale.values()):
        raise DataError(f"{called} has transA, alpha or beta, which no layer of a network has: {_ANEW}")
    turned_matrix, product = f"{number}.matrix", f"{number}.product" if len(inputs) == 3 else node.output[0]
    constants[turned_matrix] = constants[inputs[1]].T if turned["transB"] else constants[inputs[1]]
    steps = [Operation("MatMul", (inputs[0], turned_matrix), product)]
    return steps if len(inputs) == 2 else [*steps, Operation("Add", (product, inputs[2]), node.output[0])]


def _fits(constant: Array, *, is_matrix: bool) -> bool:
    """Whether ``constant`` is a matrix, or else a number for each column: nothing else makes rows of rows."""
    if is_matrix:
        return constant.ndim == 2 and bool(constant.size)
    return constant.ndim < 2 or len(constant) == 1


def _shaped(file: Path, steps: list[Operation], constants: dict[str, Array], start: str) -> Graph:
    """The network of ``steps``, whose shapes are tried on two rows."""
    end = steps[-1].op if steps[-1].op in ("Softmax", "Sigmoid") else ""
    inner = tuple(steps[:-1] if end else steps)
    matrices = [constants[s.inputs[1]] for s in inner if s.op == "MatMul" and s.inputs[0] == start]
    if not matrices:
        raise DataError(f"{file} does not multiply its input {start!r} by a matrix: {_ANEW}")
    if len(matrices[0]) > _MOST_INPUTS:
        raise DataError(
            f"{file} has {counted(len(matrices[0]), 'input')}, more than {_MOST_INPUTS}: give a regression "
            "as .npz or .safetensors, a network with fewer inputs"
        )
    used = {name: constants[name] for step in inner for name in step.inputs if name in constants}
    network = Graph(inner, used, start, end, width=len(matrices[0]), outputs=0)
    if (numbers := network.numbers) > _MOST_NUMBERS:
        raise DataError(
            f"{file} makes {counted(numbers, 'number', ',')} of a row, more than {_MOST_NUMBERS:,}: {_ANEW}"
        )
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            outputs = network.of_arrays(np.zeros((2, network.width)))
    except ValueError as error:
        raise DataError(f"{file} has matrices that do not fit each other: {_ANEW}") from error
    if outputs.ndim != 2 or len(outputs) != 2 or not outputs.size or not np.isfinite(outputs).all():
        raise DataError(f"{file} makes outputs of shape {outputs.shape} of two rows, or no numbers: {_ANEW}")
    return Graph(inner, used, start, end, width=network.width, outputs=outputs.shape[1])


def _simplest(file: Path, network: Graph) -> Graph | LinearModel:
    """A linear model where the network is one: it has closed forms. Several outputs without a softmax leave
    as they are, as those of a network."""
    linear = all(step.op in ("MatMul", "Add") for step in network.steps)
    if not linear or (network.end == "Sigmoid" and network.outputs > 1):
        return network
    if (products := network.width * network.numbers) > _MOST_PRODUCTS:
        raise DataError(
            f"{file} has {counted(network.width, 'input')} and makes "
            f"{counted(network.numbers, 'number', ',')} of each row, {products:,} in sum: give a regression "
            f"of more than {_MOST_PRODUCTS:,} as .npz or .safetensors"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        bias, unit = network.of_arrays(np.zeros((1, network.width))), np.zeros((1, network.width))
        weight = np.empty((network.outputs, network.width))
        for column in range(network.width):  # one by one: what a step makes of all rows can be large
            unit[0, column] = 1
            weight[:, column] = (network.of_arrays(unit) - bias)[0]
            unit[0, column] = 0
    weight = checked_numbers(file, "the product of all matrices", weight)
    raw = network.end == "" and network.outputs > 1
    return LinearModel(weight, raw=True) if raw else of_weight(weight)
