"""FedAdOb's pages from made-up rows: CAP, the best attack, losses, what stands beside the paper's numbers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from vflens.experiments.figures import FigureOptions
from vflens.experiments.figures.fedadob import forms, studies, times, trade_offs
from vflens.experiments.figures.fedadob.cells import _over_rows, best, caps, missed, unlearned
from vflens.experiments.figures.fedadob.methods import (
    AUTHORS,
    DEFENSES,
    FEATURES,
    FEDADOB,
    UNDEFENDED,
    Method,
)
from vflens.experiments.figures.fedadob.printed import (
    CAPS,
    LARGEST_MEANS,
    MODELS,
    VARIANCES,
    VERTICAL_SECONDS,
)
from vflens.experiments.sweeps.pool import Pool
from vflens.numerics.measures.intervals import spread
from vflens.plugins.attack import FAIR_GUESS

STUDY = studies.studies(FigureOptions(Pool(Path()), "quick"))[0]


def row(strength: float, seed: int, attack: str, accuracy: float, error: float) -> dict[str, Any]:
    named = {"defense": "DP", "strength": strength, "seed": seed, "attack": attack}
    return {**named, "accuracy": accuracy, "error": error, "blind": 0.06}


def test_an_attack_that_misses_its_own_undefended_number_is_named_first() -> None:
    assert missed("CAFE", [0.05], 0.033).startswith(
        "CAFE as printed has error 0.050 without a defence here, 0.033 in the paper"
    )
    assert missed("CAFE", [0.05, 0.07, 0.06], 0.033)
    assert (
        missed("CAFE", [0.03], 0.033) == missed("CAFE", [0.02, 0.08], 0.033) == missed("CAFE", [], 0.1) == ""
    )


def test_an_interval_over_attacked_rows_stands_on_the_page_of_one_seed() -> None:
    """Errors of labels have none there, and an exact answer no share of its own."""
    halves = [(0.1, 0.02), (0.2, 0.01), (0.05, 0.02), (0.0, 0.0), (0.3, None)]
    rows = [{**row(1, 0, "cafe", 0.9, error), "half_width": half} for error, half in halves]
    words = (
        "Over the attacked rows the 95 % interval of an MSE is ± 20 % of it in the median, ± 40 % at most."
    )
    assert _over_rows(rows) == [words]
    guess = {**row(1, 0, FAIR_GUESS, 0.9, 0.5), "half_width": 0.5}  # each part of a page has it again
    assert _over_rows([*rows, guess, guess]) == [words]
    assert _over_rows([row(1, 0, "pmc", 0.9, 0.4)]) == []
    (lenet, *_) = studies.studies(FigureOptions(Pool(Path()), "full"))
    assert (lenet.attacked, lenet.granted) == (200, 1000)


def test_losses_of_accuracy_are_those_of_each_seed() -> None:
    """In points, against no defence of the same seed; a form without a result has a line of its own."""
    none, printed = forms.FORMS[:2]
    places = [(none, 0.0, (0.95, 0.97)), (printed, 2, (0.94, 0.93))]
    rows = [
        {**row(value, seed, attack, found, error), "defense": method.title}
        for method, value, accuracies in places
        for seed, found in enumerate(accuracies)
        for attack, error in (("inverse_network:linear", 0.02), ("inverse_network:keyless", 0.03))
    ]
    lines = {(r[0], r[1]): list(r[2:]) for r in forms._lines(rows)}
    losses = [1.0, 4.0]
    assert lines[FEDADOB, "2"][1] == spread(losses, digits=1)
    assert lines[FEDADOB, "2"][2:] == ["0.0200 ± 0.0000", "0.0300 ± 0.0000", "0.0600 ± 0.0000"]
    assert lines[UNDEFENDED, "–"][:2] == [spread([0.95, 0.97]), "–"]
    assert lines[FEDADOB, "10"] == lines[AUTHORS, "2"] == ["–"] * 5
    layers = [m.defenses(2)[0] for m in forms.FORMS[1:]]
    assert [(d.get("normalise"), d.get("keys")) for d in layers] == [
        (None, None),
        ("authors", "redrawn"),
        ("authors", "fixed"),
    ]


def test_the_papers_one_number_stands_beside_both_forms_of_the_layer() -> None:
    drawn = trade_offs._bars(STUDY, [row(2.0, 0, "wmi", 1.0, 0.3)], FEATURES, DEFENSES[-2:])
    paper = {d["name"]: d["y"] for d in drawn["spec"]["data"]}["CAFE, paper (LeNet-MNIST)"]
    assert paper == [CAPS["CAFE", "LeNet-MNIST", FEDADOB].mean] * 2


def test_cap_is_the_mean_over_the_grid_and_the_best_attack_its_minimum() -> None:
    dp = Method("DP", (FEATURES,), {"passive": "dp_gaussian"}, "level", values=(0.1, 1.0))
    rows = [
        *(row(0.1, s, "wmi", 0.9, 0.02 + 0.01 * s) for s in (0, 1)),
        *(row(1.0, s, "wmi", 0.5, 0.20) for s in (0, 1)),
        *(row(0.1, s, "bmi", 0.9, 0.05) for s in (0, 1)),
        *(row(1.0, s, "bmi", 0.5, 0.10) for s in (0, 1)),
    ]
    assert [c.value for c in caps(rows, dp, "wmi")] == pytest.approx([(0.018 + 0.1) / 2, (0.027 + 0.1) / 2])
    strongest = best(rows, dp, FEATURES)
    assert [c.value for c in strongest] == pytest.approx([(0.018 + 0.05) / 2, (0.027 + 0.05) / 2])
    assert [c.or_blind for c in strongest] == pytest.approx([(0.018 + 0.03) / 2, (0.027 + 0.03) / 2])
    assert len(caps(rows[1:], dp, "wmi")) == 1  # a mean over part of the grid is another figure


def test_an_attack_that_failed_in_one_seed_leaves_the_others() -> None:
    """Each seed has its best attack, among those that were scored throughout in it."""
    dp = Method("DP", (FEATURES,), {"passive": "dp_gaussian"}, "level", values=(0.1, 1.0))
    rows = [row(v, s, "wmi", 1.0, 0.3) for v in (0.1, 1.0) for s in (0, 1, 2)]
    rows += [row(v, s, "bmi", 1.0, 0.1) for v, s in ((0.1, 0), (1.0, 0), (0.1, 1))]
    assert [len(caps(rows, dp, name)) for name in ("wmi", "bmi")] == [3, 1]
    assert [c.value for c in best(rows, dp, FEATURES)] == pytest.approx([0.1, 0.3, 0.3])
    assert best(rows[6:], dp, FEATURES)[0].settings[0].attack == "bmi"
    assert best([], dp, FEATURES) == []


def test_federations_that_learn_nothing_are_named() -> None:
    """Two seeds of .95 and one of .1 have a mean of .67 that no federation has."""
    rows = [
        {**row(v, s, a, 0.9, 0.1), "model": "tiny", "accuracy_gain": 0.01 if (v, s) == (1.5, 1) else 0.8}
        for a in ("wmi", "bmi")
        for v in (0.1, 1.5)
        for s in (0, 1, 2)
    ]
    (sentence,) = unlearned(rows)
    assert sentence.startswith("tiny, DP: 1 of 6 federations learn nothing")
    assert sentence.endswith("Strengths (seed): 1.5 (1).")
    assert unlearned(rows[:3]) == []


def test_what_was_not_scored_has_no_bar() -> None:
    shown = trade_offs._bars(STUDY, [row(2.0, 0, "wmi", 1.0, 0.3)], FEATURES, [Method("DP", (FEATURES,))])
    heights = {d["name"]: d["y"] for d in shown["spec"]["data"]}
    assert heights.pop("CAFE, paper (LeNet-MNIST)") == [CAPS["CAFE", "LeNet-MNIST", "DP"].mean]
    assert heights.pop("MI, paper (LeNet-MNIST)") == [CAPS["MI", "LeNet-MNIST", "DP"].mean]
    assert set(map(tuple, heights.values())) == {(None,)}


def test_a_method_is_timed_against_no_defence_of_its_own_turn() -> None:
    """Its first turn was refused: the second is not set against another method's first."""
    seconds = [(UNDEFENDED, 0, 1.0), (UNDEFENDED, 1, 2.0), (FEDADOB, 1, 3.0)]
    rows = [{"defense": d, "seed": s, "train": t, "infer": t / 10} for d, s, t in seconds]
    printed = {UNDEFENDED: (7.03, 1.48), FEDADOB: (7.05, 1.46)}
    shown = ["3.000", "1.50", "1.00", "0.300", "1.50", "0.99"]
    assert times._ratios(rows, FEDADOB, printed) == shown


def test_intervals_are_students() -> None:
    values = [0.1, 0.2, 0.4]
    half = stats.t.ppf(0.975, 2) * stats.tstd(values) / math.sqrt(3)
    assert spread(values) == f"{sum(values) / 3:.3f} ± {half:.3f}"
    assert (spread([0.25]), spread([])) == ("0.250", "–")


def test_the_papers_tables_are_whole() -> None:
    """Numbers read off the text, cell by cell, against a few that its prose or other tables repeat."""
    assert len(CAPS) == 4 * (5 + 5 + 7)
    assert {m for _, m, _ in CAPS} == set(MODELS)
    assert CAPS["CAFE", "LeNet-MNIST", FEDADOB] == (0.137, 0.002)
    assert CAPS["PMC", "ResNet-CIFAR10", "GradPerturb"] == (0.276, 0.119)
    large = [a * e for n, (a, e) in LARGEST_MEANS.items() if n >= 5]
    mean = sum(large) / len(large)
    assert mean == pytest.approx(CAPS["CAFE", "AlexNet-CIFAR10", FEDADOB].mean, abs=1e-3)
    accuracy, error = VARIANCES[0]
    assert accuracy * error == pytest.approx(CAPS["PMC", "AlexNet-CIFAR10", UNDEFENDED].mean, abs=2e-3)
    assert VERTICAL_SECONDS["InstaHide"][0] / VERTICAL_SECONDS[UNDEFENDED][0] == pytest.approx(3.1, abs=0.01)
