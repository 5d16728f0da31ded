"""An audit of networks from ONNX files: rebuilt as torch has them, cut at the party's columns."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commandline import Refused, Run, refused, strict, vflens
from onnx import TensorProto, helper, numpy_helper
from scipy.special import expit, softmax

from vflens.errors import DataError, install_extra
from vflens.experiments.audit import defenses
from vflens.experiments.audit.inverted import Rebuilt
from vflens.experiments.weights.linear import LinearModel
from vflens.experiments.weights.network import Graph
from vflens.experiments.weights.onnx_file import read_onnx
from vflens.types import Array

_FIXTURES = (refused, vflens)  # used by name
BANK = Path(__file__).parents[4] / "examples/bank_passive.csv"
MINE = ("--columns", "age,income,credit_score")
RNG = np.random.default_rng(1)
W1, B1, W2, B2 = RNG.normal(size=(3, 6)), RNG.normal(size=6), RNG.normal(size=(6, 4)), RNG.normal(size=4)
UNITS = np.array([40.0, 60, 80])  # of the bank's columns, about
X = RNG.uniform(0, 1, (20, 3)) * UNITS


def node(op: str, inputs: str, output: str, **given: Any) -> Any:
    return helper.make_node(op, inputs.split(), [output], **given)


def saved(file: Path, nodes: Sequence[Any], constants: dict[str, Any], **changes: Any) -> Path:
    """A model of ``nodes`` from ``x`` to ``y``."""
    tensors = [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()]
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in changes.get("inputs", ["x"])]
    outputs = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in changes.get("outputs", ["y"])
    ]
    graph = helper.make_graph(list(nodes), "g", inputs, outputs, tensors)
    file.write_bytes(helper.make_model(graph).SerializeToString())
    return file


LAYERS: dict[str, Any] = {"W1": (W1 / UNITS[:, None]).T, "b1": B1, "W2": W2, "b2": B2}
NODES = [
    node("Gemm", "x W1 b1", "h", transB=1),
    node("Relu", "h", "r"),
    node("MatMul", "r W2", "m"),
    node("Add", "m b2", "z"),
    node("Softmax", "z", "y"),
]


def test_a_network_is_what_its_formula_says(tmp_path: Path) -> None:
    network = read_onnx(saved(tmp_path / "m.onnx", NODES, LAYERS))
    assert isinstance(network, Graph)
    assert (network.width, network.outputs, network.end, network.layers) == (3, 4, "Softmax", 2)
    due = np.maximum((X / UNITS) @ W1 + B1, 0) @ W2 + B2
    np.testing.assert_allclose(network.of_arrays(X), due, rtol=1e-12)


def test_sigmoids_softmax_and_sums_of_layers_inside(tmp_path: Path) -> None:
    nodes = [
        node("MatMul", "x A", "a"), node("Sigmoid", "a", "s"), node("MatMul", "s B", "b"),
        node("Add", "b s", "c"), node("Softmax", "c", "d", axis=-1), node("Gemm", "d C", "y"),
    ]  # fmt: skip
    A, B, C = RNG.normal(size=(3, 5)), RNG.normal(size=(5, 5)), RNG.normal(size=(5, 2))
    network = read_onnx(saved(tmp_path / "m.onnx", nodes, {"A": A, "B": B, "C": C}))
    assert isinstance(network, Graph)
    hidden = expit(X @ A / 100)
    due: Array = softmax(hidden @ B + hidden, axis=1) @ C
    np.testing.assert_allclose(network.of_arrays(X / 100), due, rtol=1e-12)
    bounds = np.tile([0.0, 1.0], (3, 1))
    rebuilt = Rebuilt(network, np.arange(3), bounds, np.zeros(3))
    np.testing.assert_allclose(rebuilt(torch.from_numpy(X / 100)).numpy(), due, rtol=1e-12)


@pytest.mark.parametrize("end", ["", "Softmax", "Sigmoid"])
def test_a_graph_without_bends_is_a_regression(tmp_path: Path, end: str) -> None:
    last = W2[:, :1] if end == "Sigmoid" else W2
    nodes = [node("Gemm", "x W1 b1", "h"), node("MatMul", "h W2", "z" if end else "y")]
    nodes += [node(end, "z", "y")] if end else []
    model = read_onnx(saved(tmp_path / "m.onnx", nodes, {"W1": W1, "b1": B1, "W2": last}))
    assert isinstance(model, LinearModel)
    due = (W1 @ last).T
    np.testing.assert_allclose(
        model.weight, np.vstack([0 * due, due]) if end == "Sigmoid" else due, atol=1e-12
    )
    assert model.raw is (end == "")


@pytest.mark.parametrize(
    ("end", "outputs"), [("", 1), ("", 2), ("", 3), ("", 5), ("Softmax", 2), ("Softmax", 3), ("Softmax", 5)]
)
def test_each_output_that_leaves_without_a_softmax_is_an_equation(
    tmp_path: Path, vflens: Run, monkeypatch: pytest.MonkeyPatch, end: str, outputs: int
) -> None:
    """Three columns have k equations by k outputs, behind a softmax k − 1; three of rank three are exact."""
    monkeypatch.setattr(defenses, "candidates", lambda: iter([]))
    nodes = [node("MatMul", "x W", "z" if end else "y"), *([node(end, "z", "y")] if end else [])]
    weight = RNG.normal(size=(3, outputs)) / UNITS[:, None]
    file = saved(tmp_path / "m.onnx", nodes, {"W": weight})
    options = ("--models", "1", "--known", "0", "--training", "secure", "--out", tmp_path / "a.html")
    found = strict(vflens("audit", BANK, *MINE, "--weights", file, *options, "--json").out)
    equations = outputs if not end or outputs == 1 else outputs - 1
    assert (found["classes"], found["equations"]) == (max(outputs, 2), equations)
    errors = {a["attack"]: a["mse"] for a in found["attacks"] if a["phase"] == "predict"}
    assert (errors["ls"] < 1e-12) is (equations >= 3)
    (of_equations,) = [s for s in found["verdict"] if "whoever knows its parameters" in s]
    assert ("by the outputs as they leave, without a softmax," in of_equations) is (not end and outputs > 1)


def test_an_audit_inverts_what_determines_the_columns(tmp_path: Path, vflens: Run) -> None:
    """Six units of three columns, and no softmax: the outputs determine the columns."""
    nodes = [node("Gemm", "x W1 b1", "h", transB=1), node("Sigmoid", "h", "s"), node("MatMul", "s W2", "y")]
    square = {**LAYERS, "W2": RNG.normal(size=(6, 6))}
    file = saved(tmp_path / "m.onnx", nodes, square)
    options = ("--rows", "15", "--out", tmp_path / "a.html")
    found = strict(vflens("audit", BANK, *MINE, "--weights", file, *options, "--json").out)
    (reached,) = found["attacks"]
    assert reached["released"] == "outputs"
    assert reached["mse"] < 0.01 * found["blind"][found["blind_guess"]]
    assert "From the outputs of a network of 2 matrices white-box inversion" in found["verdict"][2]
    assert found["verdict"][-1].startswith("What its training gave away is not in these figures")


def test_a_network_of_all_parties_is_cut_at_the_partys_columns(tmp_path: Path, vflens: Run) -> None:
    file = saved(tmp_path / "m.onnx", NODES, LAYERS)
    given = ("--weights", file, "--inputs", "age,income,credit_score")
    options = ("--rows", "10", "--out", tmp_path / "a.html", "--json")
    found = strict(vflens("audit", BANK, "--columns", "income,age", *given, *options).out)
    assert (found["columns"], found["inputs"]) == (["income", "age"], 3)
    (reached,) = found["attacks"]
    assert reached["released"] == "probabilities"
    assert reached["mse"] < 0.2 * found["blind"][found["blind_guess"]]


def test_a_network_needs_rows_with_all_inputs(tmp_path: Path, refused: Refused) -> None:
    file = saved(tmp_path / "m.onnx", NODES, LAYERS)
    given = ("--columns", "age,income", "--weights", file, "--inputs", "age,income,rent")
    sentence = refused(3, "audit", BANK, *given)
    assert "column 'rent' is missing" in sentence
    assert "add the others' columns to the file and name yours with --columns" in sentence


BIG = np.zeros((2, 3, 4))


REPEATED = [node("MatMul", "x w", "h"), node("Add", "h b", "z"), node("Add", "z z", "y")]  # for each column
DOUBLED = [  # 2^2000 overflows
    node("MatMul", "x W2", "h0"),
    *(node("Add", f"h{i} h{i}", "y" if i == 1999 else f"h{i + 1}") for i in range(2000)),
]


@pytest.mark.parametrize(
    ("nodes", "constants", "changes", "words"),
    [
        ([node("Conv", "x W1", "y")], {}, {}, r"node 0 \(Conv\) of .* is Conv, an audit rebuilds Gemm,"),
        ([node("Relu", "x", "y", domain="me")], {}, {}, "is Relu, an audit"),
        (NODES, {"W1": LAYERS["W1"] * np.nan}, {}, "'W1' of .* holds something else than finite numbers"),
        (NODES, {"W1": np.array([["a"]], object)}, {}, "reads 'W1', which no earlier node makes"),
        (NODES, {"W1": W1}, {}, "matrices that do not fit each other"),
        (NODES, {"W1": BIG}, {}, r"has 'W1' of shape \(2, 3, 4\)"),
        (NODES, {"b2": BIG}, {}, r"has 'b2' of shape \(2, 3, 4\)"),
        (NODES, {"W2": W2[:, :0], "b2": B2[:0]}, {}, "has 'W2' of shape"),
        (NODES[1:], {}, {}, "reads 'h', which no earlier node makes: the graph is a cycle"),
        ([node("Add", "x y", "y")], {}, {}, "reads 'y', which no earlier node makes"),
        ([*NODES[:1], node("Relu", "h", "h"), node("Relu", "h", "y")], {}, {}, "makes 'h' a second time"),
        (NODES[:2], {}, {}, "the last node does not make the output 'y'"),
        (NODES, {}, {"inputs": ["x", "x2"]}, "has 2 inputs and 1 output:"),
        (NODES, {}, {"outputs": ["y", "z"]}, "has 1 input and 2 outputs"),
        ([], {}, {}, "the last node does not make"),
        ([node("Relu", "x", "y")], {}, {}, "does not multiply its input 'x' by a matrix"),
        ([node("MatMul", "W2 x", "y")], {}, {}, "does not multiply rows by a constant matrix"),
        ([node("Gemm", "x W1 b1", "y", alpha=2.0)], {}, {}, "has transA, alpha or beta"),
        ([node("Gemm", "x", "y")], {}, {}, "has 1 input and 1 output:"),
        ([*NODES[:4], node("Softmax", "z", "y", axis=0)], {}, {}, "has axis 0, not that of each row"),
        ([node("MatMul", "x W1", "y")], {"W1": np.zeros((5000, 2))}, {}, "has 5000 inputs, more than 4096"),
        (REPEATED, {"w": np.ones((400, 1)), "b": np.zeros(40_000)}, {}, "400 inputs and makes 80,001 num"),
        (REPEATED, {"w": np.ones((3, 1)), "b": np.zeros(600_000)}, {}, "makes 1,200,001 numbers of a row"),
        (REPEATED, {"w": np.ones(3), "b": B1}, {}, r"has 'w' of shape \(3,\)"),
        ([*NODES[:4], node("Add", "z c", "y")], {"c": np.ones((2, 4))}, {}, r"has 'c' of shape \(2, 4\)"),
        ([*NODES[:4], node("Relu", "c", "d"), node("Add", "z d", "y")], {"c": np.ones((2, 4))}, {}, "has 'c"),
        (DOUBLED, {}, {}, "product of all matrices' of .* something else than finite numbers"),
    ],
)  # fmt: skip
def test_a_graph_that_cannot_be_rebuilt_is_refused(
    tmp_path: Path, nodes: Any, constants: Any, changes: Any, words: str
) -> None:
    given = {**LAYERS, **constants}
    with pytest.raises(DataError, match=words):
        read_onnx(saved(tmp_path / "m.onnx", nodes, given, **changes))


def _bytes(change: Any) -> bytes:
    """A model whose first tensor ``change`` has changed."""
    graph = helper.make_graph(NODES, "g", [], [], [numpy_helper.from_array(W1, "W1")])
    model = helper.make_model(graph)
    change(model.graph.initializer[0])
    data: bytes = model.SerializeToString()
    return data


def _outside(tensor: Any) -> None:
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\xff" * 40, "cannot be read as ONNX"),
        (_bytes(lambda t: None)[:90], "cannot be read as ONNX"),
        (b"", "has 0 inputs and 0 outputs"),
        (_bytes(lambda t: t.dims.__setitem__(0, 1 << 40)), "tensor 'W1' of .* cannot be read"),
        (_bytes(lambda t: t.dims.__setitem__(0, -3)), "tensor 'W1' of .* cannot be read"),
        (_bytes(_outside), "tensor 'W1' of .* lies in another file"),
    ],
)
def test_a_file_that_lies_is_refused(tmp_path: Path, data: bytes, words: str) -> None:
    (tmp_path / "m.onnx").write_bytes(data)
    with pytest.raises(DataError, match=words):
        read_onnx(tmp_path / "m.onnx")


def test_a_missing_extra_is_named(tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    file = saved(tmp_path / "m.onnx", NODES, LAYERS)
    monkeypatch.setitem(sys.modules, "onnx", None)
    sentence = refused(2, "audit", BANK, *MINE, "--weights", file)
    assert sentence == f"{file} needs the package onnx: {install_extra('weights')}"
