"""``vl.estimate`` of a dict: what ``vflens attack --arrays`` makes of a file with the same arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commandline import Run, vflens
from scipy.special import softmax
from treetraining import trained

import vflens as vl

_FIXTURES = (vflens,)  # used by name
TRAINING = trained(2, 120, trees=5)
SPACES = {**TRAINING.seen_by_passive(), "classes": 2}
KNOWN = {"known": [0, 1, 2, 3, 4], "labels": TRAINING.y[:5].tolist()}
SUMS = TRAINING.seen_by_active()
RNG = np.random.default_rng(0)
W = RNG.normal(size=(3, 4))
SCORES = {"W": W, "scores": softmax(RNG.random((20, 4)) @ W.T, axis=1), "bounds": [[-1, 2]] * 4}


@pytest.mark.parametrize(
    ("attack", "seen", "params"),
    [
        ("instance_spaces", SPACES, {}),
        ("instance_spaces", {**SPACES, **KNOWN}, {}),
        ("histograms", SUMS, {}),
        ("half_star", SCORES, {}),
        ("random_guess", SCORES, {}),
        ("cls", SCORES, {"start": "half"}),
    ],
)
def test_the_numbers_are_those_of_the_command(
    tmp_path: Path, vflens: Run, attack: str, seen: dict[str, Any], params: dict[str, Any]
) -> None:
    np.savez(tmp_path / "seen.npz", **seen)
    settings = [part for key, value in params.items() for part in ("--set", f"{key}={value}")]
    given = ("--arrays", tmp_path / "seen.npz", "--attack", attack, "--out", tmp_path / "out.npz")
    assert vflens("attack", *given, *settings).code == 0
    found = vl.estimate(attack, seen, **params)
    with np.load(tmp_path / "out.npz") as saved:
        assert (found.attack, found.target) == (str(saved["attack"]), str(saved["target"]))
        for name, array in found.arrays().items():
            np.testing.assert_array_equal(array, saved[name])
        kept = {"attack", "target", "scored_set", "estimates", "clusters", "bounds", "read_as"}
        assert saved.keys() - found.arrays().keys() <= kept


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        (("instance_spaces", {"tree": [0]}), vl.errors.DataError, "^the dict lacks 'spaces'"),
        (("histograms", {**SUMS, "y": [0]}), vl.errors.DataError, "^the dict holds 'y'"),
        (("instance_spaces", {**SPACES, "tree": [[0], [1, 2]]}), vl.errors.DataError, "^'tree' of the dict"),
        (("half_star", SCORES, [[0.0]]), vl.errors.ConfigError, "^b does not go with a dict of arrays"),
        (("half_star", W), vl.errors.ConfigError, "^b is missing: give A and b, or a dict"),
        (("wmi", SCORES), vl.errors.ConfigError, "does not solve linear equations"),
    ],
)
def test_what_does_not_go_together_is_refused(
    arguments: tuple[Any, ...], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        vl.estimate(*arguments)


def test_a_seed_or_a_parameter_that_would_change_nothing_is_refused() -> None:
    with pytest.raises(vl.errors.ConfigError, match=r"^rng does not go with a dict of arrays"):
        vl.estimate("cls", SCORES, rng=0)
    with pytest.raises(vl.errors.ConfigError, match="attack 'histograms' has no parameter: leave 'most' out"):
        vl.estimate("histograms", SUMS, most=3)
    with pytest.raises(
        vl.errors.ConfigError, match=r"^verify takes an estimate of vl\.estimate\(name, A, b\)"
    ):
        vl.verify(vl.estimate("half_star", SCORES), W, W)
