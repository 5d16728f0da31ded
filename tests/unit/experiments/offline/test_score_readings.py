"""Scores of others in another order, per cent, or one-versus-rest: recognised by what fits, and named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commandline import Run, strict, vflens
from scipy.special import expit, softmax
from thinned import first

from vflens.errors import DataError
from vflens.experiments.offline.given_arrays import estimate_arrays
from vflens.experiments.offline.score_readings import one_versus_rest, unscaled
from vflens.types import Array

_FIXTURES = (vflens,)  # used by name
SHAPES = [(2, 2), (3, 2), (4, 2), (5, 3), (3, 5)]


def federation(k: int, d: int) -> tuple[dict[str, Any], Array, Array]:
    """What an adversary has but the scores, the logits (80, k) and the columns (80, d)."""
    rng = np.random.default_rng([k, d])
    weight, own, of_own = rng.normal(0, 3, (k, d)), rng.normal(size=(80, 2)), rng.normal(size=(k, 2))
    bias, x = rng.normal(size=k), rng.uniform(size=(80, d))
    seen = {"W": weight, "bias": bias, "own": own, "W_own": of_own}
    return seen, x @ weight.T + own @ of_own.T + bias, x


def read(seen: dict[str, Any], scores: Array) -> tuple[str, Array]:
    found, kept = estimate_arrays("seen.npz", {**seen, "scores": scores}, "rcc2", {})
    return str(kept["read_as"]), found.values


@pytest.mark.parametrize(("k", "d"), first(SHAPES, 2))
def test_right_scores_are_not_renamed_and_per_cent_give_the_same(k: int, d: int) -> None:
    seen, logits, _ = federation(k, d)
    p: Array = softmax(logits, axis=1)
    words, values = read(seen, p)
    assert words == ""
    words, of_cent = read(seen, 100 * p)
    assert words == "they are per cent"
    np.testing.assert_allclose(of_cent, values, atol=1e-6)


@pytest.mark.parametrize(("k", "d"), first(SHAPES, 2))
def test_another_order_of_classes_is_named_and_not_taken(k: int, d: int) -> None:
    """The named columns give the scores back."""
    seen, logits, _ = federation(k, d)
    p: Array = softmax(logits, axis=1)
    order = np.roll(np.arange(k), 1)
    words, _ = read(seen, p[:, order])
    back = np.argsort(order).tolist()
    one = " (of one column: 1 - scores)" if k == 2 else ""
    assert f"give scores[:, {back}]{one}, which fits" in words
    assert read(seen, p[:, order][:, back])[0] == ""
    assert read(seen, 100 * p[:, order])[0].startswith("they are per cent; their order of classes")


@pytest.mark.parametrize(("k", "d"), first(SHAPES, 2))
def test_one_versus_rest_is_read_by_its_log_odds(k: int, d: int) -> None:
    seen, logits, _ = federation(k, d)
    words, values = read(seen, expit(logits))
    assert words == "they are one-versus-rest, each class by itself"
    np.testing.assert_allclose(values, read(seen, softmax(logits, axis=1))[1], atol=1e-6)


@pytest.mark.parametrize(("k", "d"), first([(3, 2), (4, 2), (5, 3)]))
def test_scaled_one_versus_rest_is_named(k: int, d: int) -> None:
    seen, logits, _ = federation(k, d)
    shares = expit(logits) / expit(logits).sum(axis=1, keepdims=True)
    assert "one-versus-rest, scaled to sum to 1" in read(seen, shares)[0]
    known = logits - logits + seen["own"] @ seen["W_own"].T + seen["bias"]
    assert one_versus_rest(shares, known, seen["W"])
    assert not one_versus_rest(softmax(logits, axis=1), known, seen["W"])
    assert not one_versus_rest(shares[:9], known[:9], seen["W"])  # too few rows show it


def test_numbers_that_are_no_scores_are_refused_or_named_by_nothing() -> None:
    seen, _, _ = federation(4, 2)
    drawn = np.random.default_rng(0)
    with pytest.raises(DataError, match="no probabilities that sum to 1"):
        read(seen, drawn.uniform(0.1, 0.9, (80, 4)))
    assert read(seen, drawn.dirichlet(np.ones(4), 80))[0] == ""


def test_of_scores_in_one_column_the_other_class_is_what_is_left() -> None:
    seen, logits, _ = federation(2, 2)
    rows = {"W": [[-1, 1]] @ seen["W"], "W_own": [[-1, 1]] @ seen["W_own"], "bias": [[-1, 1]] @ seen["bias"]}
    first = softmax(logits, axis=1)[:, 0]
    assert "(of one column: 1 - scores), which fits" in read({**seen, **rows}, first)[0]
    assert read({**seen, **rows}, 1 - first)[0] == ""


@pytest.mark.parametrize("labels", [np.array([0, 1, 1]), np.array([[1.0, 0], [0, 1]]), np.ones(3)])
def test_labels_are_named(labels: Array) -> None:
    found, words = unscaled(labels)
    assert "they are labels, no probabilities" in words
    assert found is labels


def test_no_scores_are_scaled_without_a_reason() -> None:
    for scores in (np.array([[0.2, 0.8]]), np.array([0.3, 1.0]), np.zeros((0, 2)), np.array([[-1.0, 101]])):
        found, words = unscaled(scores)
        assert words == ""
        assert found is scores


def test_a_command_and_its_score_name_the_order(tmp_path: Path, vflens: Run) -> None:
    seen, logits, x = federation(2, 2)
    np.savez(tmp_path / "s.npz", **seen, scores=softmax(logits, axis=1)[:, ::-1])
    np.savez(tmp_path / "t.npz", x=x)
    given = ("attack", "--arrays", tmp_path / "s.npz", "--attack", "rcc2", "--out", tmp_path / "e.npz")
    which = "scores[:, [1, 0]] (of one column: 1 - scores)"
    named = f"their order of classes is not that of W: give {which}, which fits"
    assert strict(vflens(*given, "--json").out)["read_as"] == named
    for ended in (vflens(*given), vflens("score", tmp_path / "e.npz", "--truth", tmp_path / "t.npz")):
        assert f"scores of others: {named}\n" in ended.out
