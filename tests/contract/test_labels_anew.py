"""The same attack on labels once they are dealt anew: what it finds of these is no leak of training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from labelthieves import LABELS, MLP, TWO_CLASSES
from laboratory import federation

from vflens.clients.dealt_labels import dealt
from vflens.experiments.outcome import words
from vflens.experiments.outcome.decide import State
from vflens.experiments.outcome.finding import Finding, Quantity
from vflens.experiments.results.record import RecordedRun, read_runs
from vflens.experiments.results.verdict import verdict

REPEATED, ROWS = 200, 600
NO_MORE = "no leak of training beyond that"


def of(value: float, anew: float | None, rows: int = ROWS, blind: float = 0.5) -> Finding:
    place = {"subject": "labels", "attack": "a", "target": "t", "scored_set": "train"}
    return Finding.of_share(Quantity.LABELS, value, rows, blind, anew=anew, **place)


@pytest.mark.parametrize(
    ("value", "anew", "state", "end"),
    [
        (0.95, 0.1, State.FOUND, "training leaks the rest"),
        (0.95, -0.4, State.FOUND, "training leaks the rest"),
        (0.75, 0.9, State.NOT_FOUND, NO_MORE),
        (0.99, 1.0, State.NOT_FOUND, NO_MORE),
        (0.80, 0.58, State.UNDECIDED, "whether training leaks more is not decided"),
    ],
)
def test_the_table_of_known_truth(value: float, anew: float, state: State, end: str) -> None:
    found = of(value, anew)
    assert found.beyond_anew is state
    assert words.anew(found).endswith(end)


def test_the_sentence_has_both_shares_of_what_a_guess_leaves_open() -> None:
    """A guess that is right more often leaves less open: shares of right labels would not compare."""
    assert words.anew(of(0.9, 0.1, blind=0.8)) == (
        "it finds 50 % of what a guess leaves open, the same attack 10 % after labels are dealt anew: "
        "training leaks the rest"
    )


@pytest.mark.parametrize("found", [of(0.95, None), of(0.5, 0.1), of(0.4, -0.2)])
def test_of_nothing_found_or_nothing_tried_nothing_is_said(found: Finding) -> None:
    assert words.anew(found) == ""


@pytest.mark.parametrize("right", [0.6, 0.75, 0.97])
def test_an_attack_that_finds_as_much_anew_shows_no_leak_of_training(right: float) -> None:
    """Two drawn records of one share: 5 % at most are taken for a leak, of more right ones nearly all."""
    rng = np.random.default_rng(1)
    value, anew = rng.binomial(ROWS, right, (2, REPEATED)) / ROWS
    states = [of(v, 2 * a - 1).beyond_anew for v, a in zip(value, anew, strict=True)]
    assert states.count(State.FOUND) <= 0.05 * REPEATED
    more = [of(v, a - 0.5).beyond_anew for v, a in zip(value, anew, strict=True) if v > 0.7]
    assert more.count(State.FOUND) >= 0.95 * len(more)


def test_labels_are_dealt_by_own_columns_as_often_as_those_that_are_known() -> None:
    rng = np.random.default_rng(2)
    own, known, counts = rng.random((5000, 4)), rng.choice(5000, 400, replace=False), np.array([100, 60, 240])
    labels = dealt(own, known, counts, rng)
    assert np.bincount(labels[known], minlength=3).tolist() == pytest.approx(counts, abs=1)
    order = np.linalg.lstsq(own - 0.5, (labels == 2) - 0.6, rcond=None)[0]
    named = (own - 0.5) @ order
    assert ((named > np.quantile(named, 0.4)) == (labels == 2)).mean() > 0.7
    other = dealt(own, known, counts, rng)
    assert (other != labels).mean() > 0.2


def ran(folder: Path, training: dict[str, Any], *attacks: str, **more: Any) -> RecordedRun:
    settings: dict[str, Any] = {
        "data": {**TWO_CLASSES, "rows": 800},
        "model": MLP,
        "training": {"batch_size": 40, **training},
        "disclose": [{**LABELS, "rows": 60}],
        "attacks": [{"name": name, "at": "passive", **more} for name in attacks],
    }
    federation(folder, **settings).run()
    (run,) = read_runs([folder])
    return run


def states(run: RecordedRun) -> dict[str, State]:
    """What is known of each attack on training rows."""
    return {r.attack: r.finding("").beyond_anew for r in run.labels if r.scored_set == "train"}


def test_gradients_tell_what_no_other_labels_do(tmp_path: Path) -> None:
    names = ("similarity", "direction_scoring")
    run = ran(tmp_path, {"epochs": 8, "learning_rate": 0.05}, *names)
    assert states(run) == dict.fromkeys(names, State.FOUND)
    sentences = [p for p in str(verdict([run])).split(". ") if "direction_scoring at passive" in p]
    assert [p.endswith("after labels are dealt anew: training leaks the rest") for p in sentences] == [True]


def test_what_columns_tell_of_any_label_is_no_leak_of_training(tmp_path: Path) -> None:
    """A model that has not trained: completion finds labels by own columns, and others as well."""
    run = ran(tmp_path, {"epochs": 1, "learning_rate": 1e-6}, "pmc", steps=60)
    for r in run.labels:
        assert r.finding("").state is State.FOUND
        assert r.finding("").beyond_anew is not State.FOUND
    assert NO_MORE in str(verdict([run]))


def test_less_than_a_guess_of_labels_dealt_anew_is_no_more_than_a_guess() -> None:
    assert of(0.55, -0.4).beyond_anew is of(0.55, 0.0).beyond_anew is State.UNDECIDED
