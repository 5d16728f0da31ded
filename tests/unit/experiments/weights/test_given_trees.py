"""An audit of XGBoost's trees: recorded models, and files that nobody should believe."""

from __future__ import annotations

import copy
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from boostedmodels import people
from commandline import Refused, Run, refused, strict, vflens

from vflens.errors import DataError
from vflens.experiments.weights import ubjson
from vflens.experiments.weights.tree_file import read_trees
from vflens.experiments.weights.trees import TreeModel
from vflens.experiments.weights.ubjson import parse

_FIXTURES = (refused, vflens)  # used by name
ROOT = Path(__file__).parents[4]
RECORDED = ROOT / "examples/recorded/xgboost"
BANK = ROOT / "examples/bank_passive.csv"
MINE = ("--columns", "age,income,credit_score")


def scores(model: TreeModel, x: Any) -> Any:
    """The sum of the leaves that rows (N, D) reach, for each score."""
    found = np.zeros((len(x), model.scores))
    for tree, score in zip(model.trees, model.score, strict=True):
        found[:, score] += tree.value[tree.leaves][tree.reached(tree.sends_left(x))]
    return found


@pytest.mark.parametrize("name", ["bank.ubj", "bank.json", "classes.ubj"])
def test_scores_are_those_of_xgboost_up_to_its_base_score(name: str) -> None:
    model = read_trees(RECORDED / name)
    with np.load(RECORDED / "margins.npz") as recorded:
        x, margins = recorded["x"], recorded[name.partition(".")[0]].reshape(len(recorded["x"]), -1)
    off = margins - scores(model, x.astype(np.float32))
    assert np.ptp(off, axis=0).max() < 2e-6  # it adds in single precision
    assert model.names == ("age", "income", "credit_score", "balance", "contacts", "loan")


def test_an_audit_reads_paths_from_the_score(tmp_path: Path, vflens: Run) -> None:
    page = tmp_path / "audit.html"
    given = ("--weights", RECORDED / "bank.ubj", "--rows", "30", "--out", page)
    found = strict(vflens("audit", BANK, *MINE, *given, "--json").out)
    by_score, by_leaves = found["attacks"]
    assert (by_score["released"], by_leaves["released"]) == ("score", "leaves")
    assert by_leaves["right_branches"] == 1
    assert found["blind_branches"] < by_score["right_branches"] <= 1
    assert by_score["mse"] < found["blind"][found["blind_guess"]]
    assert all(0 < a <= b + 1e-12 <= 1 for a, b in zip(by_leaves["widths"], by_score["widths"], strict=True))
    assert found["others_drawn"]
    leaves = found["training_rows"]
    assert [(leaf["rows"], leaf["members"]) for leaf in leaves] == [
        *((6, 2), (21, 8), (39, 1), (25, 20), (24, 7), (29, 22), (36, 36))
    ]  # tests/unit/numerics/boosting/test_first_tree.py counts them
    assert all(a < b for leaf in leaves for a, b in zip(leaf["low"], leaf["high"], strict=True))
    assert (
        "has class 1, a guess from the leaf is right for 83.3%, the more frequent answer for 53.3%"
        in (found["verdict"][-2])
    )
    _check_boxes(found)
    shown = vflens("audit", BANK, *MINE, *given)
    assert shown.code == 0
    assert "From the score of 10 boosted trees path restriction errs by" in shown.out
    assert found["verdict"][0].split(" errs")[0] in page.read_text(encoding="utf-8")


def _check_boxes(found: dict[str, Any]) -> None:
    """Boxes of six trees, by the party's columns alone; tests/unit/numerics/boosting/test_later_trees.py."""
    stated = found["training_boxes"]
    assert not any("prove" in sentence for sentence in found["verdict"])
    boxes, x = stated["boxes"], people()[0][:, :3].astype(np.float32)
    assert (stated["trees"], len(boxes)) == (6, 99)
    assert all(box["least"] == box["most"] for box in boxes)  # the number of each class is exact
    pure = sum(box["rows"] for box in boxes if box["least"] in (0, box["rows"]))
    assert stated["certain"] == pytest.approx(pure / 180)
    low, high, rows = (np.array([box[key] for box in boxes]) for key in ("low", "high", "rows"))
    inside = ((x[:, None] >= low) & (x[:, None] <= high)).all(axis=2)
    assert (inside.sum(axis=0) >= rows).all()
    leaves = found["training_rows"]
    first = np.array([leaf["high"] for leaf in leaves]) - [leaf["low"] for leaf in leaves]
    weights = [leaf["rows"] for leaf in leaves]
    for name, width, of in (("width", high - low, rows), ("first_width", first, weights)):
        shares = width / (high.max(axis=0) - low.min(axis=0))
        assert stated[name] == pytest.approx(np.average(shares, axis=0, weights=of).mean())
    shown = f"the class of {pure / 180:.1%}: a row's box leaves {stated['width']:.1%} of the range"
    assert shown in found["verdict"][-1]
    condition = "If no row had a weight or a base margin of its own, no value was missing and every tree saw"
    assert found["verdict"][-1].startswith(f"{condition} the same rows, its first 6 trees tell")
    assert found["verdict"][-2].startswith(
        "If no row had a weight or a base margin of its own and every tree"
    )


@pytest.mark.facts
def test_inputs_that_no_tree_splits_cost_next_to_nothing(tmp_path: Path, vflens: Run) -> None:
    """A name takes a few bytes of the file."""
    model, more = _model(), 100_000
    model["learner"]["learner_model_param"]["num_feature"] = str(6 + more)
    model["learner"]["feature_names"] += [f"x{i}" for i in range(more)]
    (tmp_path / "wide.json").write_text(json.dumps(model))
    options = ("--out", tmp_path / "a.html", "--json")
    found = [
        strict(vflens("audit", BANK, *MINE, "--weights", file, "--rows", "10", *options).out)["attacks"]
        for file in (RECORDED / "bank.json", tmp_path / "wide.json")
    ]
    assert found[0] == found[1]


def test_rows_with_all_inputs_are_cut_at_the_partys_columns(tmp_path: Path, vflens: Run) -> None:
    with np.load(RECORDED / "margins.npz") as recorded:
        x = recorded["x"]
    table = tmp_path / "all.csv"
    names = read_trees(RECORDED / "bank.ubj").names
    rows = [",".join(map(repr, [i, *row.tolist()])) for i, row in enumerate(x[:40])]
    table.write_text("\n".join([f"id,{','.join(names)}", *rows]), encoding="utf-8")
    options = ("--weights", RECORDED / "classes.ubj", "--out", tmp_path / "a.html", "--json")
    found = strict(vflens("audit", table, *MINE, *options).out)
    assert not found["others_drawn"]
    assert (found["columns"], found["inputs"]) == (["age", "income", "credit_score"], 6)
    assert [(leaf["class"], leaf["rows"], leaf["members"]) for leaf in found["training_rows"]] == [
        *((0, 180, 1), (1, 100, 0), (1, 3, 2), (1, 77, 77), (2, 80, 0), (2, 100, 100))
    ]  # counted in test_first_tree.py
    assert "whether a row has class 2, a guess from the leaf is right for 100.0%" in found["verdict"][-2]
    assert found["verdict"][-1].endswith("only those of one logistic score are searched.")
    alone = strict(vflens("audit", table, "--columns", "loan", *options).out)
    assert alone["columns"] == ["loan"]


def _model() -> Any:
    return json.loads((RECORDED / "bank.json").read_text(encoding="utf-8"))


def _tree(model: Any) -> Any:
    return model["learner"]["gradient_booster"]["model"]["trees"][0]


def test_a_model_that_does_not_tell_of_training_is_audited_without(tmp_path: Path, vflens: Run) -> None:
    model = copy.deepcopy(_model())
    for tree in model["learner"]["gradient_booster"]["model"]["trees"]:
        del tree["base_weights"]
    (tmp_path / "m.json").write_text(json.dumps(model), encoding="utf-8")
    given = ("--weights", tmp_path / "m.json", "--rows", "10", "--out", tmp_path / "audit.html")
    found = strict(vflens("audit", BANK, *MINE, *given, "--json").out)
    assert found["training_rows"] == []
    assert found["training_untold"] == "it lacks base_weights"
    assert found["verdict"][-1].endswith("it tells nothing of training rows: it lacks base_weights.")


def _audited(tmp_path: Path, vflens: Run, model: Any) -> dict[str, Any]:
    (tmp_path / "m.json").write_text(json.dumps(model), encoding="utf-8")
    given = ("--weights", tmp_path / "m.json", "--rows", "10", "--out", tmp_path / "audit.html")
    found: dict[str, Any] = strict(vflens("audit", BANK, *MINE, *given, "--json").out)
    return found


@pytest.mark.facts
def test_early_stopping_ends_the_score_and_not_what_training_tells(tmp_path: Path, vflens: Run) -> None:
    """A file without the later trees is attacked alike."""
    model = _model()
    model["learner"]["attributes"] = {"best_iteration": "3"}
    found = _audited(tmp_path, vflens, model)
    assert found["model"] == "4 of 10 boosted trees"
    assert any("best_iteration" in sentence for sentence in found["verdict"])
    assert found["training_boxes"]["trees"] == 6
    shorter = _model()
    kept = shorter["learner"]["gradient_booster"]["model"]
    del kept["trees"][4:], kept["tree_info"][4:]
    assert _audited(tmp_path, vflens, shorter)["attacks"] == found["attacks"]


@pytest.mark.facts
def test_dart_scales_scores_and_not_what_training_tells(tmp_path: Path, vflens: Run) -> None:
    model, plain = _model(), _audited(tmp_path, vflens, _model())
    booster = model["learner"]["gradient_booster"]
    dropped = [0.5, *[1.0] * 9]
    booster.update(name="dart", gbtree={"model": booster.pop("model")}, weight_drop=dropped)
    found = _audited(tmp_path, vflens, model)
    assert found["training_rows"] == plain["training_rows"]
    assert found["training_boxes"] == {}
    assert found["training_untold"] == "dart left trees out of others"
    (tmp_path / "m.json").write_text(json.dumps(model), encoding="utf-8")
    read, whole = read_trees(tmp_path / "m.json"), read_trees(RECORDED / "bank.json")
    for mine, its, factor in zip(read.trees, whole.trees, dropped, strict=True):
        np.testing.assert_array_equal(mine.value, factor * its.value)


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"reg_loss_param": {"scale_pos_weight": "2"}}, "its numbers of rows are not whole"),
        ({"name": "binary:logitraw"}, "its numbers of rows are not whole"),
        ({"name": "reg:squarederror"}, "its numbers of rows are not whole"),
    ],
)
def test_an_objective_that_does_not_fit_tells_nothing(
    tmp_path: Path, vflens: Run, facts: dict[str, Any], reason: str
) -> None:
    """The people had the logistic loss, and no weight."""
    model = _model()
    model["learner"]["objective"].update(facts)
    found = _audited(tmp_path, vflens, model)
    assert (found["training_rows"], found["training_boxes"]) == ([], {})
    assert reason in found["verdict"][-1]


@pytest.mark.parametrize(
    ("weights", "alone", "labels"),
    [(False, 2, "hides the learning rate"), (True, 2, "so does the label of each of these")],
)
def test_a_regression_tells_who_is_alone_in_a_leaf(
    tmp_path: Path, vflens: Run, weights: bool, alone: int, labels: str
) -> None:
    """Six people of squared error, λ = 0, η = 1: a node's weight is the mean of its labels."""
    model = _model()
    learner = model["learner"]
    learner["objective"] = {"name": "reg:squarederror", "reg_loss_param": {"scale_pos_weight": "1"}}
    learner["learner_model_param"]["base_score"] = "0E0"
    tree = {
        **{"tree_param": {"size_leaf_vector": "1"}, "left_children": [1, 3, 5, -1, -1, -1, -1]},
        **{"right_children": [2, 4, 6, -1, -1, -1, -1], "split_indices": [0, 1, 2, 0, 0, 0, 0]},
        **{"sum_hessian": [6, 3, 3, 1, 2, 2, 1], "base_weights": [59 / 6, 3, 50 / 3, 1, 4, 10, 30]},
        "split_conditions": [40.0, 3000.0, 600.0, 1, 4, 10, 30],
    }
    if not weights:
        del tree["base_weights"]
    learner["gradient_booster"]["model"].update(trees=[tree], tree_info=[0])
    found = _audited(tmp_path, vflens, model)
    assert [leaf["rows"] for leaf in found["training_rows"]] == [1, 2, 2, 1]
    assert (
        f"6 training rows end in each leaf of the first tree: {alone} end in one alone"
        in found["verdict"][-1]
    )
    assert labels in found["verdict"][-1]


def test_pruned_nodes_are_named(tmp_path: Path, vflens: Run) -> None:
    """XGBoost's exact method leaves nodes in the file that no path reaches."""
    model = _model()
    for tree in model["learner"]["gradient_booster"]["model"]["trees"]:
        for name, value in (("left_children", -1), ("right_children", -1), ("split_indices", 2147483647)):
            tree[name] += [value] * 2
        for name in ("split_conditions", "sum_hessian", "base_weights"):
            tree[name] += [0.5] * 2
        tree["split_type"] = []
    found = _audited(tmp_path, vflens, model)
    assert found["pruned_nodes"] == 20
    assert "It keeps 20 nodes that pruning cut" in found["verdict"][-1]


def _changes() -> list[tuple[str, Any]]:
    def trees(model: Any) -> Any:
        return model["learner"]["gradient_booster"]["model"]

    return [
        (
            "gradient_booster.name is 'gblinear'",
            lambda m: m["learner"]["gradient_booster"].update(name="gblinear"),
        ),
        ("weight_drop does not fit", lambda m: m["learner"]["gradient_booster"].update(weight_drop=[1])),
        ("best_iteration or", lambda m: m["learner"].update(attributes={"best_iteration": "-1"})),
        ("objective.name is 'rank:ndcg'", lambda m: m["learner"]["objective"].update(name="rank:ndcg")),
        ("num_target is 2", lambda m: m["learner"]["learner_model_param"].update(num_target="2")),
        (
            "it has 1,048,577 inputs",
            lambda m: m["learner"]["learner_model_param"].update(num_feature="1048577"),
        ),
        ("'learner' is missing", lambda m: m.pop("learner")),
        ("it has not one of 1 score", lambda m: trees(m)["tree_info"].pop()),
        ("it has not one of 1 score", lambda m: trees(m)["tree_info"].__setitem__(0, 3)),
        ("it has not one of", lambda m: trees(m).update(trees=[], tree_info=[])),
        ("num_class is 3", lambda m: m["learner"]["learner_model_param"].update(num_class="3")),
        ("num_class is 1000000", lambda m: m["learner"]["learner_model_param"].update(num_class="1000000")),
        ("no whole number", lambda m: _tree(m)["left_children"].__setitem__(0, 1.5)),
        ("feature_names has not 6", lambda m: m["learner"].update(feature_names=["a"])),
        ("feature_names has not 6", lambda m: m["learner"].update(feature_names=["a"] * 6)),
        ("several values", lambda m: _tree(m)["tree_param"].update(size_leaf_vector="3")),
        ("splits categories", lambda m: _tree(m)["split_type"].__setitem__(0, 1)),
        ("of different lengths", lambda m: _tree(m)["left_children"].pop()),
        ("of different lengths", lambda m: _tree(m)["sum_hessian"].pop()),
        ("of different lengths", lambda m: _tree(m)["base_weights"].pop()),
        ("splits a feature that is none of 6", lambda m: _tree(m)["split_indices"].__setitem__(0, 6)),
        ("is no finite number", lambda m: _tree(m)["split_conditions"].__setitem__(0, 1e39)),
        ("a node 0 that is shared, in a cycle", lambda m: _tree(m)["left_children"].__setitem__(1, 0)),
        ("a node 2 that is shared, in a cycle", lambda m: _tree(m)["left_children"].__setitem__(0, 2)),
        ("a node 999 that is shared", lambda m: _tree(m)["right_children"].__setitem__(0, 999)),
        ("is no model that path", lambda m: _tree(m).update(left_children="abc")),
        ("is no model that path", lambda m: m.update(learner=[1])),
    ]


@pytest.mark.parametrize(("words", "change"), _changes())
def test_a_model_that_cannot_be_attacked_is_refused(tmp_path: Path, words: str, change: Any) -> None:
    model = copy.deepcopy(_model())
    change(model)
    file = tmp_path / "m.json"
    file.write_text(json.dumps(model), encoding="utf-8")
    with pytest.raises(DataError, match=words) as refusal:
        read_trees(file)
    assert str(file) in str(refusal.value)


def _length(n: int) -> bytes:
    return b"L" + struct.pack(">q", n)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "byte 0 announces 1 byte where 0 are left"),
        (b"[" * 1000, "more than 32 containers"),
        (b"{i\x01a" * 1000, "more than 32 containers"),
        (b"[$d#" + _length(1 << 60), "bytes where 0 are left"),
        (b"[$d#" + _length(-1), "announces -1 values"),
        (b"[#" + _length(1 << 60) + b"Z", "announces 1 byte where 0 are left"),
        (b"[$Z#" + _length(1 << 60), "only numbers are packed"),
        (b"[$d]", "no number of values"),
        (b"{$d#i\x00", "an object of one type"),
        (b"S" + _length(1 << 40) + b"a", "bytes where 1 are left"),
        (b"SZ", "has 'Z' where a length is due"),
        (b"Si\x01\xff", "utf-8"),
        (b"?", "unknown marker '?'"),
        (b"ZZ", "bytes follow its end"),
        (b"{i\x01a", "announces 1 byte"),
    ],
)
def test_ubjson_that_lies_is_refused(tmp_path: Path, refused: Refused, data: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse(data)
    (tmp_path / "m.ubj").write_bytes(data)
    sentence = refused(3, "audit", BANK, *MINE, "--weights", tmp_path / "m.ubj")
    assert "cannot be read as a model of XGBoost" in sentence


@pytest.mark.parametrize("many", [b"N", b"Z", b"Si\x00", b"[]", b"i\x00", b"[$i#i\x00"])
def test_ubjson_of_too_many_values_is_refused(monkeypatch: pytest.MonkeyPatch, many: bytes) -> None:
    most = 500_000 if many == b"N" else 5_000  # the bound itself takes a second or two
    if many != b"N":
        monkeypatch.setattr(ubjson, "_MOST", most)
    words = f"more than {most:,} values and lengths: save a model"
    with pytest.raises(ValueError, match=words):
        parse(b"[" + many * most + b"]")
    with pytest.raises(ValueError, match=words):
        parse(b"{" + (b"i\x00" + many) * most + b"}")


def test_ubjson_is_what_json_says() -> None:
    data = b"{i\x01a[i\xffU\xffI\xff\xfel\x00\x00\x00\x07NTFZSi\x02\xc3\xa9]i\x01b[$I#i\x02\x00\x01\x01\x00}"
    found = parse(data)
    assert found["a"] == [-1, 255, -2, 7, True, False, None, "é"]
    assert found["b"].tolist() == [1, 256]
    assert parse(b"{#i\x01i\x01cD" + struct.pack(">d", 0.1)) == {"c": 0.1}


@pytest.mark.parametrize("cut", range(0, 11000, 977))
def test_a_truncated_model_is_refused(tmp_path: Path, cut: int) -> None:
    (tmp_path / "m.ubj").write_bytes((RECORDED / "bank.ubj").read_bytes()[:cut])
    with pytest.raises(DataError, match="cannot be read as a model of XGBoost"):
        read_trees(tmp_path / "m.ubj")


@pytest.mark.parametrize("data", [b"{", b"[" * 100_000, b'{"learner": NaN}', b"\xff", b"7"])
def test_json_that_is_no_model_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "m.json").write_bytes(data)
    with pytest.raises(DataError, match=r"booster\.save_model"):
        read_trees(tmp_path / "m.json")


def test_columns_that_do_not_fit_are_refused(refused: Refused) -> None:
    given = ("--weights", RECORDED / "bank.ubj")
    assert "the model has 6 inputs, not 2" in refused(
        2, "audit", BANK, *MINE, *given, "--inputs", "age,income"
    )
    renamed = ("--inputs", "age,income,a,b,c,d")
    assert "column 'credit_score' of" in refused(2, "audit", BANK, *MINE, *given, *renamed)
    assert "the model has 2 classes" in refused(2, "audit", BANK, *MINE, *given, "--classes", "3")
    assert "is no file or data set" in refused(2, "audit", ROOT / "examples", *given)
