"""Recordings of vertical boosting: attacked, scored, and refused where they contradict themselves."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commandline import Refused, Run, refused, strict, vflens
from treetraining import trained

_FIXTURES = (refused, vflens)  # used by name
TRAINING = trained(0, 300, trees=10)
SEEN: dict[str, Any] = {**TRAINING.seen_by_passive(), "classes": 2}
KNOWN = {"known": np.arange(20), "labels": TRAINING.y[:20]}
SPACES = ("--attack", "instance_spaces")


def recorded(folder: Path, **changes: Any) -> Path:
    """The arrays of :data:`SEEN` with ``changes``; None leaves one out."""
    arrays = {key: value for key, value in {**SEEN, **changes}.items() if value is not None}
    np.savez(folder / "seen.npz", **arrays)
    return folder / "seen.npz"


def test_labels_are_found_up_to_the_names_of_classes(tmp_path: Path, vflens: Run) -> None:
    out, truth = tmp_path / "estimate.npz", tmp_path / "truth.npz"
    found = strict(vflens("attack", "--arrays", recorded(tmp_path), *SPACES, "--out", out, "--json").out)
    assert (found["rows"], found["target"], found["scored_set"]) == (300, "labels", "train")
    np.savez(truth, y=TRAINING.y)
    score = strict(vflens("score", out, "--truth", truth, "--json").out)
    with np.load(out) as saved:
        agree = (saved["values"].argmax(axis=1) == TRAINING.y).mean()
        assert out.stat().st_mode & 0o777 == 0o600
    assert score["label_accuracy"] == pytest.approx(max(agree, 1 - agree))
    assert score["label_accuracy"] > 0.9
    assert score["blind_label_accuracy"] == pytest.approx(max(TRAINING.y.mean(), 1 - TRAINING.y.mean()))
    np.savez(truth, y=1 - TRAINING.y)
    renamed = strict(vflens("score", out, "--truth", truth, "--json").out)
    assert renamed["label_accuracy"] == score["label_accuracy"]


def test_known_labels_name_the_classes_and_are_not_scored(tmp_path: Path, vflens: Run) -> None:
    out, truth = tmp_path / "estimate.npz", tmp_path / "truth.npz"
    given = ("--arrays", recorded(tmp_path, **KNOWN), *SPACES, "--out", out)
    assert "280 train rows of 'labels' estimated by instance_spaces" in vflens("attack", *given).out
    np.savez(truth, y=TRAINING.y)
    right = strict(vflens("score", out, "--truth", truth, "--json").out)
    assert (right["rows"], right["label_accuracy"] > 0.9) == (280, True)
    np.savez(truth, y=1 - TRAINING.y)
    wrong = strict(vflens("score", out, "--truth", truth, "--json").out)
    assert wrong["label_accuracy"] == pytest.approx(1 - right["label_accuracy"])


@pytest.mark.parametrize(
    ("words", "changes"),
    [
        ("lacks 'spaces': give at least spaces, tree, classes", {"spaces": None}),
        ("lacks 'classes'", {"classes": None}),
        ("holds 'y': the arrays are spaces, tree, classes, known, labels", {"y": np.ones(3)}),
        ("'spaces' of .* has shape \\(300,\\): give \\(M = 300, n\\)", {"spaces": SEEN["spaces"][0]}),
        ("'tree' of .* has shape \\(2,\\): give \\(M = ", {"tree": np.zeros(2)}),
        ("'spaces' of .* something else than 0 and 1", {"spaces": 2 * SEEN["spaces"]}),
        ("'spaces' of .* holds no row", {"spaces": 0 * SEEN["spaces"]}),
        ("'tree' of .* whole numbers from 0", {"tree": SEEN["tree"] - 0.5}),
        ("'tree' of .* from 0 to 9,007,199,254,740,992", {"tree": np.full(len(SEEN["tree"]), 1e30)}),
        ("'classes' of .* from 0 to 9,007,199,254,740,992", {"classes": 1e30}),
        ("'known' of .* from 0 to 9,007,199,254,740,992", {"known": [1e30], "labels": [0]}),
        ("'labels' of .* from 0 to 9,007,199,254,740,992", {"known": [0], "labels": [1e30]}),
        ("'classes' of .* is 1 with 300 rows", {"classes": 1}),
        ("one of 'known' and 'labels'", {"known": np.arange(3)}),
        ("'known' of .* a row twice", {"known": np.zeros(2), "labels": np.zeros(2)}),
        ("'known' of .* another one than 0 to 299", {"known": [300], "labels": [0]}),
        ("'known' of .* all rows", {"known": np.arange(300), "labels": TRAINING.y}),
        ("'labels' of .* has a class beyond 1: give classes from 0 to 1", {"known": [0], "labels": [2]}),
        ("'labels' of .* has shape \\(2,\\): give \\(m = 1\\)", {"known": [0], "labels": [0, 1]}),
        ("'tree' of .* finite numbers", {"tree": np.full(len(SEEN["tree"]), np.nan)}),
    ],
)
def test_a_recording_that_contradicts_itself_is_refused(
    tmp_path: Path, refused: Refused, words: str, changes: dict[str, Any]
) -> None:
    text = refused(3, "attack", "--arrays", recorded(tmp_path, **changes), *SPACES)
    assert re.search(words, text)
    assert str(tmp_path / "seen.npz") in text


def test_a_parameter_is_refused(tmp_path: Path, refused: Refused) -> None:
    text = refused(2, "attack", "--arrays", recorded(tmp_path), *SPACES, "--set", "trees=3")
    assert "attack 'instance_spaces' has no parameter: leave 'trees' out" in text


SUMS: dict[str, Any] = trained(1, 150, trees=8).seen_by_active()
SUMS |= {key: SUMS[key][:, :2] for key in ("gradient_sums", "hessian_sums")}
BINS = ("--attack", "histograms")


def with_sums(folder: Path, **changes: Any) -> Path:
    """The arrays of :data:`SUMS` with ``changes``; None leaves one out."""
    np.savez(folder / "seen.npz", **{key: v for key, v in {**SUMS, **changes}.items() if v is not None})
    return folder / "seen.npz"


def test_bins_are_found_and_scored_as_columns(tmp_path: Path, vflens: Run) -> None:
    out, truth = tmp_path / "estimate.npz", tmp_path / "truth.npz"
    true = trained(1, 150, trees=0).bins[:, :2]
    found = strict(vflens("attack", "--arrays", with_sums(tmp_path), *BINS, "--out", out, "--json").out)
    with np.load(out) as saved:
        values, proven, status = (saved[key] for key in ("values", "extra_proven", "status"))
    guessed = values * 15
    np.testing.assert_array_equal(guessed[proven], true[proven])
    assert found["proven"] == pytest.approx(proven.mean())
    assert 0 < found["proven"] < 1
    assert found["status"] == {
        "ambiguous": int((~proven.all(axis=1)).sum()),
        "ok": int(proven.all(axis=1).sum()),
    }
    assert (status[proven.all(axis=1)] == "ok").all()
    np.savez(truth, x=true)
    score = strict(vflens("score", out, "--truth", truth, "--json").out)
    assert score["mse"] == pytest.approx(((guessed - true) ** 2).mean() / 15**2)
    right = (guessed == true).mean(axis=0)
    assert [c["found"] for c in score["columns"].values()] == pytest.approx(right)
    assert all(c["found"] > 2 * c["blind_found"] for c in score["columns"].values())
    shown = vflens("attack", "--arrays", tmp_path / "seen.npz", *BINS, "--out", out).out
    assert f"{proven.mean():.1%} of the cells are proven" in shown


@pytest.mark.parametrize(
    ("words", "changes"),
    [
        ("lacks 'hessian_sums'", {"hessian_sums": None}),
        ("holds 'classes': the arrays are spaces, tree, gradient", {"classes": 2}),
        ("'hessian' of .* has shape .* give \\(T = 8, n = 150\\)", {"hessian": SUMS["hessian"][:3]}),
        ("'tree' of .* has 8 with the gradients of 8 trees", {"tree": SUMS["tree"] + 1}),
        ("'tree' of .* from 0 to 9,007,199,254,740,992", {"tree": 1e30 + SUMS["tree"]}),
        ("'hessian' of .* below 0", {"hessian": -SUMS["hessian"]}),
        (
            "'gradient_sums' of .* of node 0 .* not cumulative",
            {"gradient_sums": SUMS["gradient_sums"].cumsum(2)},
        ),
        ("'hessian_sums' of .* do not add up", {"hessian_sums": SUMS["hessian_sums"][:, :, ::-1] * 2}),
        ("have 1 bin and 2 columns", {k: SUMS[k][:, :, :1] for k in ("gradient_sums", "hessian_sums")}),
    ],
)
def test_sums_that_contradict_themselves_are_refused(
    tmp_path: Path, refused: Refused, words: str, changes: dict[str, Any]
) -> None:
    text = refused(3, "attack", "--arrays", with_sums(tmp_path, **changes), *BINS)
    assert re.search(words, text)


def test_a_recording_of_too_many_rows_is_refused(tmp_path: Path, refused: Refused) -> None:
    many: dict[str, Any] = {"spaces": np.zeros((2, 10**6), np.uint8), "tree": np.zeros(2)}
    many |= {key: np.zeros((1, 10**6), np.float32) for key in ("gradient", "hessian")}
    many["spaces"][0, 0] = 1
    sums = {key: np.zeros((2, 1, 2)) for key in ("gradient_sums", "hessian_sums")}
    text = refused(3, "attack", "--arrays", with_sums(tmp_path, **many, **sums), *BINS)
    assert "2,000,000 pairs of a node and a row, more than 1,000,000: give fewer trees" in text
