"""Trees of LightGBM, CatBoost and scikit-learn beside what they say themselves, and files that lie."""

from __future__ import annotations

import copy
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commandline import Run, strict, vflens

from vflens.errors import DataError
from vflens.experiments.weights.tree_file import read_trees
from vflens.experiments.weights.trees import TreeModel
from vflens.numerics.boosting.rates import UntoldError
from vflens.numerics.boosting.stated_counts import StatedTraining, stated_means, stated_members
from vflens.numerics.boosting.trees import Tree
from vflens.types import Array

_FIXTURES = (vflens,)  # used by name
ZOO = Path(__file__).parents[3] / "zoo"
sys.path.append(str(ZOO))

import judge  # noqa: E402

OTHERS = ZOO / "others"
MODELS = judge.models(OTHERS)


def scores(model: TreeModel, x: Array) -> Array:
    """The sum of the leaves that rows (N, D) reach, for each score."""
    found = np.zeros((len(x), model.scores))
    for tree, score in zip(model.trees, model.score, strict=True):
        values = tree.value[tree.leaves][tree.reached(tree.sends_left(x.astype(model.dtype)))]
        found[:, slice(None) if values.ndim == 2 else slice(score, score + 1)] += values.reshape(len(x), -1)
    return found


@pytest.mark.parametrize("at", range(len(MODELS)), ids=[model.file.name for model in MODELS])
def test_scores_are_the_frameworks_own_and_no_number_is_false(at: int) -> None:
    model = MODELS[at]
    with np.load(OTHERS / "truth.npz") as truth:
        raw = truth[f"{model.file.name}:raw"].reshape(len(model.x), -1)
    off = raw - scores(read_trees(model.file), model.x)
    assert np.ptp(off, axis=0).max() < 1e-9 * max(1, np.abs(raw).max())
    verdict = judge.judged(model)
    assert verdict.false == []
    assert verdict.leaves > 1
    facts = judge.told(model)[1].training_rows[0]
    hidden = ("lightgbm_number", "catboost_several")  # JSON lacks λ; a leaf of several classes
    if not (model.file.name.startswith(hidden) and model.file.suffix == ".json"):
        assert "members" in facts or "mean_label_off" in facts
    else:
        assert facts.keys() == {"rows", "low", "high"}


def test_an_audit_says_what_a_file_tells_beyond_its_predictions(tmp_path: Path, vflens: Run) -> None:
    (model,) = (m for m in MODELS if m.file.name == "lightgbm_plain-0.txt")
    names = [f"f{j}" for j in range(model.x.shape[1])]
    table, page = tmp_path / "t.csv", tmp_path / "a.html"
    rows = [",".join(map(repr, [i, *row])) for i, row in enumerate(model.x.tolist())]
    table.write_text("\n".join([",".join(["id", *names]), *rows]), encoding="utf-8")
    given = ("audit", table, "--weights", model.file, "--rows", "10", "--out", page)
    found = strict(vflens(*given, "--json").out)
    assert ["feature_infos", f"{len(names)} columns' least and largest training values"] in found["tells"]
    assert sum(leaf["rows"] for leaf in found["training_rows"]) == len(model.x)
    assert f"how many of {len(model.x)} training rows end in each leaf" in found["verdict"][-2]
    assert found["verdict"][-1].endswith("It tells no more here: only those of XGBoost are searched.")
    assert "What the file tells beyond its predictions" in page.read_text(encoding="utf-8")
    assert "feature_infos" in vflens(*given, "--details").out


Change = Callable[[Any], Any]


def _refused(tmp_path: Path, file: str, words: str, change: Change) -> None:
    source = OTHERS / file
    text = source.read_text(encoding="utf-8")
    changed = text if source.suffix == ".txt" else json.loads(text)
    changed = change(copy.deepcopy(changed))
    broken = tmp_path / file
    broken.write_text(changed if isinstance(changed, str) else json.dumps(changed), encoding="utf-8")
    with pytest.raises(DataError, match=words) as refusal:
        read_trees(broken)
    assert str(broken) in str(refusal.value)


def _put(*path: Any) -> Change:
    """Sets what stands at all but the last of a path to the last."""
    *keys, last, value = path

    def change(model: Any) -> Any:
        inner = model
        for key in keys:
            inner = inner[key]
        inner[last] = value
        return model

    return change


@pytest.mark.parametrize(
    ("words", "change"),
    [
        ("it does not begin with 'tree'", lambda text: text[:2000]),
        ("it does not begin with 'tree'", lambda text: "id,age\n1,2\n"),
        ("version is 'v9'", lambda text: text.replace("version=v4", "version=v9")),
        ("objective is 'poisson'", lambda text: text.replace("binary sigmoid:1", "poisson")),
        ("objective is 'binary sigmoid:2'", lambda text: text.replace("sigmoid:1", "sigmoid:2")),
        ("tree 0 splits categories or", lambda text: text.replace("num_cat=0", "num_cat=1", 1)),
        ("or has linear leaves", lambda text: text.replace("is_linear=0", "is_linear=1", 1)),
        ("tree 0 takes 0 for missing", lambda text: text.replace("_type=2", "_type=6")),
        ("tree 0 has arrays of", lambda text: text.replace("threshold=", "threshold=1 ", 1)),
        ("'leaf_count' is missing", lambda text: text.replace("leaf_count", "count")),
        ("that is shared", lambda text: re.sub(r"left_child=\S+", "left_child=0", text)),
        ("a text stands where a number", lambda text: text.replace("leaf_value=", "leaf_value=x", 1)),
    ],
)  # fmt: skip
def test_text_of_lightgbm_that_lies_is_refused(tmp_path: Path, words: str, change: Change) -> None:
    _refused(tmp_path, "lightgbm_plain-0.txt", words, change)


_FIRST = ("oblivious_trees", 0)
_LOSS = ("model_info", "params", "loss_function", "type")


@pytest.mark.parametrize(
    ("file", "words", "change"),
    [
        ("lightgbm_plain-1.json", "version is 'v2'", _put("version", "v2")),
        ("lightgbm_plain-1.json", "tree 0 splits categories or", _put("tree_info", 0, "num_cat", 1)),
        ("lightgbm_plain-1.json", "'left_child' is missing", _put("tree_info", 0, "tree_structure", {})),
        ("lightgbm_plain-1.json", "3 first scores with the loss", _put("num_tree_per_iteration", 3)),
        ("lightgbm_plain-1.json", "no model", _put("tree_info", [])),
        ("catboost_steps-0.json", "labels of 0", _put("features_info", "categorical_features", [{}])),
        ("catboost_steps-0.json", "Poisson", _put(*_LOSS, "Poisson")),
        ("catboost_steps-0.json", "tree 0 splits", _put(*_FIRST, "splits", 0, "split_type", "OnlineCtr")),
        ("catboost_steps-0.json", "or more than 16 times", _put(*_FIRST, "splits", [{}] * 17)),
        ("catboost_steps-0.json", "no model", _put(*_FIRST, "leaf_weights", [1])),
        ("catboost_steps-0.json", "no model", _put(*_FIRST, "leaf_values", [1])),
        ("catboost_steps-0.json", "none of", _put(*_FIRST, "splits", 0, "float_feature_index", 9)),
        ("catboost_steps-0.json", "no model", _put("scale_and_bias", [1, [0, 0, 0]])),
        ("sklearn_l2-0.json", "vflens_trees is 2", _put("vflens_trees", 2)),
        ("sklearn_l2-0.json", "with the loss 'hinge'", _put("loss", "hinge")),
        ("sklearn_l2-0.json", "2 first scores", _put("base", [0, 0])),
        ("sklearn_l2-0.json", "of different lengths", _put("trees", 0, "rows", [1])),
        ("sklearn_l2-0.json", "no model", _put("trees", 0, "left", ["a"])),
        ("sklearn_l2-0.json", "'rate' is missing", lambda m: m.pop("rate") and m),
    ],
)  # fmt: skip
def test_json_that_lies_is_refused(tmp_path: Path, file: str, words: str, change: Change) -> None:
    _refused(tmp_path, file, words, change)


def _stump(rows: list[float], value: list[float]) -> Tree:
    nodes = ([0, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1], [0, *value], [sum(rows), *rows])
    return Tree(*map(np.array, nodes))


def test_members_of_one_and_of_several_steps_follow() -> None:
    """Newton by hand: 10 rows with 3 of class 1 and 6 with 6, p = 1/2, λ = 1, η = 1/10."""
    members, rows = np.array([3.0, 6.0]), np.array([10.0, 6.0])
    value = np.zeros(2)
    for steps in range(1, 6):
        q = 1 / (1 + np.exp(-value))
        value = value + (members - rows * q) / (rows * q * (1 - q) + 1)
        stated = StatedTraining(rate=0.1, penalty=1.0, steps=steps)
        tree = _stump([10, 6], (0.1 * value).tolist())
        assert stated_members(tree, 0.5, stated).tolist() == [3, 6]
        with pytest.raises(UntoldError, match="not those of whole rows"):
            stated_members(_stump([10, 6], (0.11 * value).tolist()), 0.5, stated)


@pytest.mark.parametrize("steps", [1, 3])
def test_mean_labels_follow(steps: int) -> None:
    """Each step goes n / (n + λ) of what is left to the mean."""
    way = [1 - (2 / (n + 2)) ** steps for n in (1, 4)]
    tree = _stump([1, 4], [0.3 * way[0] * 7, 0.3 * way[1] * -5])
    means = stated_means(tree, 100.0, StatedTraining(rate=0.3, penalty=2.0, steps=steps))
    np.testing.assert_allclose(means, [107, 95])


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        (StatedTraining(untold="lambda_l1 is 1"), "lambda_l1"),
        (StatedTraining(uncounted="counts are estimates"), "estimates"),
        (StatedTraining(), "single precision hides"),
    ],
)
def test_what_is_not_told_is_said(stated: StatedTraining, words: str) -> None:
    with pytest.raises(UntoldError, match=words):
        stated_members(_stump([1e6, 3], [0, 0]), 0.5, stated)
    with pytest.raises(UntoldError, match="weights"):
        stated_members(_stump([1.5, 3], [0, 0]), 0.5, StatedTraining())
