"""An audit of a regression that another framework trained."""

from __future__ import annotations

import pickle
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commandline import Refused, Run, refused, strict, vflens
from sklearn.linear_model import LogisticRegression

from vflens.errors import install_extra
from vflens.experiments.audit import defenses
from vflens.experiments.audit.given import Source, linear_subject
from vflens.experiments.weights.linear import LinearModel
from vflens.experiments.weights.read import read_model
from vflens.types import Array

_FIXTURES = (refused, vflens)  # used by name
BANK = Path(__file__).parents[4] / "examples/bank_passive.csv"
MINE = ("--columns", "age,income,credit_score")
W = np.random.default_rng(3).normal(size=(3, 3)) / [20, 50, 100]


@pytest.fixture(autouse=True)
def no_defence(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them take seconds, and they are tried on simulated models."""
    monkeypatch.setattr(defenses, "candidates", lambda: iter([]))


def saved(file: Path, **arrays: Any) -> Path:
    """``arrays`` in ``file``, by its ending."""
    if file.suffix == ".safetensors":
        from safetensors.numpy import save_file

        save_file(arrays, file)
    else:
        np.savez(file, **arrays)
    return file


def bank() -> Array:
    """The three columns, in the file's units."""
    names = BANK.read_text(encoding="utf-8").splitlines()[0].split(",")
    chosen = [names.index(name) for name in MINE[1].split(",")]
    return np.loadtxt(BANK, delimiter=",", skiprows=1, usecols=chosen)


@pytest.mark.parametrize("name", ["weights.npz", "weights.safetensors"])
def test_the_adversary_has_the_equations_of_the_given_model(tmp_path: Path, vflens: Run, name: str) -> None:
    """Two equations of three columns: half* is the nearest point to one half on a line, by another route."""
    file = saved(tmp_path / name, W=W, bias=np.ones(3))
    options = ("--known", "0", "--out", tmp_path / "audit.html", "--json")
    found = strict(vflens("audit", BANK, *MINE, "--weights", file, *options).out)
    assert (found["trained"], found["classes"], found["equations"]) == (True, 3, 2)
    x = bank()
    low, high = x.min(axis=0), x.max(axis=0)
    scaled = (x - low) / (high - low)
    a, b = np.diff(W * (high - low), axis=0)
    normal = np.cross(a, b)  # the direction in which no equation sees anything
    unseen = normal / np.linalg.norm(normal)
    error = (((scaled - 0.5) @ unseen) ** 2).mean() / 3
    (half_star,) = [a for a in found["attacks"] if a["attack"] == "half_star"]
    assert half_star["unclipped"] == pytest.approx(error, rel=1e-6)
    assert {a["kind"] for a in found["attacks"] if a["phase"] == "predict"} == {"given"}
    assert [text for text in found["verdict"] if "Against your trained model" in text]


def test_a_model_of_all_parties_is_cut_at_the_files_columns(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(60, 4))
    model = LogisticRegression().fit(x, x[:, 0] > 0)
    given = read_model(saved(tmp_path / "w.npz", W=model.coef_, bias=model.intercept_))
    assert given.classes == 2
    assert isinstance(given, LinearModel)
    inputs = ["theirs", "income", "more", "age"]
    cut = linear_subject(Source(str(BANK), None, ["age", "income"], "id", inputs=inputs), given)
    assert cut.weight is not None
    width = np.ptp(bank()[:, :2], axis=0)
    np.testing.assert_allclose(np.diff(cut.weight, axis=0)[0], model.coef_[0, [3, 1]] * width)


class Bomb:
    def __reduce__(self) -> Any:
        return sys.exit, (99,)


@pytest.mark.parametrize(
    ("name", "line"), [("m.pkl", "joblib"), ("m.joblib", "joblib"), ("m.pt", "torch"), ("m.bin", "torch")]
)
def test_a_pickle_is_refused_with_the_line_that_converts_it(
    tmp_path: Path, refused: Refused, name: str, line: str
) -> None:
    (tmp_path / name).write_bytes(pickle.dumps(Bomb()))
    sentence = refused(3, "audit", BANK, *MINE, "--weights", tmp_path / name)
    assert f"import {line}, numpy" in sentence
    assert "numpy.savez('weights.npz'" in sentence


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"coef": W}, "lacks 'W', the weights .classes, inputs.; it holds coef: rename"),
        ({"W": np.full((2, 3), np.nan)}, "'W' of .* holds something else than finite numbers"),
        ({"W": W * 1e60}, "'W' of .* holds numbers beyond 1e.50"),
        ({"W": W[0]}, r"'W' of .* has shape \(3,\): give an array of 2 axes"),
        ({"W": W[:, :0]}, r"'W' of .* has shape \(3, 0\): give \(classes, inputs\)"),
        ({"W": W, "bias": W}, r"'bias' of .* has shape \(3, 3\): give \(3,\)"),
        ({"W": W[:, :2]}, "^the model has 2 inputs, not 3: name all of them in their order with --inputs"),
    ],
)
@pytest.mark.parametrize("name", ["w.npz", "w.safetensors"])
def test_wrong_weights_are_refused(
    tmp_path: Path, refused: Refused, name: str, arrays: dict[str, Array], words: str
) -> None:
    file = saved(tmp_path / name, **arrays)
    sentence = refused(2 if words[0] == "^" else 3, "audit", BANK, *MINE, "--weights", file)
    assert re.search(words, sentence), sentence


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "holds no readable tensors"),
        (b"\xff" * 8 + b"{}", "holds no readable tensors"),
        (b"\x40\0\0\0\0\0\0\0" + b'{"W":{"dtype":"F64","shape":[3,3]', "holds no readable tensors"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, refused: Refused, data: bytes, words: str) -> None:
    (tmp_path / "w.safetensors").write_bytes(data)
    assert words in refused(3, "audit", BANK, *MINE, "--weights", tmp_path / "w.safetensors")


def test_numbers_that_numpy_does_not_have_are_refused(tmp_path: Path, refused: Refused) -> None:
    header = b'{"W":{"dtype":"BF16","shape":[1,1],"data_offsets":[0,2]}}'
    (tmp_path / "w.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\0\0")
    assert "float64" in refused(3, "audit", BANK, *MINE, "--weights", tmp_path / "w.safetensors")


def test_flags_that_do_not_fit_are_refused(tmp_path: Path, refused: Refused) -> None:
    file = saved(tmp_path / "w.npz", W=W)
    given = ("--weights", file)
    alone = refused(2, "audit", BANK, *MINE, "--inputs", "a", "--classes", "2")
    assert alone == "--inputs names those of a model: give --weights too"
    assert "the model has 3 classes and bank_passive.csv 2" in refused(
        2, "audit", BANK, *MINE, *given, "--classes", "2"
    )
    assert "the model has 3 inputs, not 2" in refused(2, "audit", BANK, *MINE, *given, "--inputs", "a,b")
    assert "--inputs names 'age' twice" in refused(2, "audit", BANK, *MINE, *given, "--inputs", "age,age,a")
    assert "column 'income' of bank_passive.csv is no input" in refused(
        2, "audit", BANK, *MINE, *given, "--inputs", "age,credit_score,a"
    )
    assert "there is no such file" in refused(3, "audit", BANK, *MINE, "--weights", tmp_path / "no.npz")
    (tmp_path / "w.h5").touch()
    assert "give a file that ends in .npz" in refused(2, "audit", BANK, *MINE, "--weights", tmp_path / "w.h5")


def test_a_missing_extra_is_named(tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    file = saved(tmp_path / "w.safetensors", W=W)
    monkeypatch.setitem(sys.modules, "safetensors", None)
    sentence = refused(2, "audit", BANK, *MINE, "--weights", file)
    assert sentence == f"{file} needs the package safetensors: {install_extra('weights')}"
