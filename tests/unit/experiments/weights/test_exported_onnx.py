"""ONNX as skl2onnx exports it: a label beside the probabilities, maps, scalers, whole linear classifiers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from scipy.special import expit, softmax

from vflens.errors import DataError
from vflens.experiments.weights.linear import LinearModel
from vflens.experiments.weights.network import Graph
from vflens.experiments.weights.onnx_file import read_onnx
from vflens.types import Array

ZOO = Path(__file__).parents[3] / "zoo/onnx"


def _truth(name: str) -> tuple[Array, Array]:
    with np.load(ZOO / "truth.npz") as truth:
        return truth[f"{name}:x"].astype(float), truth[f"{name}:p"]


@pytest.mark.parametrize("name", ["logistic", "softmax", "scaled", "texts"])
def test_a_linear_classifier_gives_its_log_ratios(name: str) -> None:
    model, (x, p) = read_onnx(ZOO / f"{name}.onnx"), _truth(name)
    assert isinstance(model, LinearModel)
    assert (model.classes, model.raw) == (p.shape[1], False)
    inside = (p > 0.01).all(axis=1)  # others are rounded
    logits, ratio = x[inside] @ model.weight.T, np.log(p[inside])
    off = (logits[:, 1:] - logits[:, :1]) - (ratio[:, 1:] - ratio[:, :1])
    assert np.ptp(off, axis=0).max() < 1e-4  # single precision; the bias is left out


@pytest.mark.parametrize("name", ["network_two", "network"])
def test_a_network_gives_its_probabilities(name: str) -> None:
    model, (x, p) = read_onnx(ZOO / f"{name}.onnx"), _truth(name)
    assert isinstance(model, Graph)
    assert model.classes == p.shape[1]
    z = model.of_arrays(x)
    found = expit(z) if model.end == "Sigmoid" else softmax(z, axis=1)
    np.testing.assert_allclose(found, p[:, 1:] if p.shape[1] == 2 else p, atol=1e-6)


def _changed(name: str, change: Any, tmp_path: Path) -> Path:
    model = onnx.load(str(ZOO / f"{name}.onnx"))
    change(model.graph)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    return tmp_path / "m.onnx"


def _set(op: str, attribute: str, value: bytes) -> Any:
    def change(graph: Any) -> None:
        (node,) = (node for node in graph.node if node.op_type == op)
        (given,) = (given for given in node.attribute if given.name == attribute)
        given.s = value

    return change


def test_outputs_without_a_softmax_count_as_they_are(tmp_path: Path) -> None:
    def raw(graph: Any) -> None:
        _set("LinearClassifier", "post_transform", b"NONE")(graph)
        (node,) = (node for node in graph.node if node.op_type == "Normalizer")
        node.op_type, node.domain = "Identity", ""
        del node.attribute[:]

    found = read_onnx(_changed("softmax", raw, tmp_path))
    assert isinstance(found, LinearModel)
    assert found.raw


def _boosted(graph: Any) -> None:
    graph.node[0].op_type = "TreeEnsembleClassifier"


@pytest.mark.parametrize(
    ("name", "words", "change"),
    [
        ("softmax", "post_transform PROBIT", _set("LinearClassifier", "post_transform", b"PROBIT")),
        ("softmax", "Normalizer", _set("LinearClassifier", "post_transform", b"LOGISTIC")),
        ("softmax", "Normalizer", _set("Normalizer", "norm", b"L2")),
        ("softmax", "has 1 input and 0 outputs", lambda graph: graph.output.pop()),
        (
            "softmax",
            "an operator of scikit-learn that cannot be read",
            lambda graph: graph.node[0].attribute[1].floats.pop(),
        ),
        ("one_versus_rest", "an audit rebuilds.* export the model anew", lambda graph: None),
        ("softmax", "give the file that XGBoost, LightGBM or CatBoost saves", _boosted),
    ],
)
def test_what_an_audit_does_not_rebuild_is_refused(
    tmp_path: Path, name: str, words: str, change: Any
) -> None:
    with pytest.raises(DataError, match=words) as refusal:
        read_onnx(_changed(name, change, tmp_path))
    assert str(tmp_path) in str(refusal.value)
