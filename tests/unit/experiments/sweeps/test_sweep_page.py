"""The page of a sweep: its plots, intervals, grids and heat map."""

from __future__ import annotations

import math
from typing import Any

import pytest

from vflens.experiments.sweeps import cap, explorer
from vflens.experiments.sweeps.sweep_page import drawing


def measured(strength: float, seed: int, mean_kl: float) -> dict[str, Any]:
    place = {"target": "p", "scored_set": "predict", "attack": "ls", "seed": seed, "strength": strength}
    return {
        **place,
        "defense": "x" if strength else "undefended",
        "relative": 0.5 + seed,
        "mse": 0.5 + seed,
        "blind": 1.0,
        "mean_kl": mean_kl,
    }


def test_a_strength_that_costs_infinitely_much_for_one_seed_has_no_finite_cost() -> None:
    rows = [measured(s, seed, 0.1 * s) for s in (0.0, 1.0, 2.0) for seed in (0, 1)]
    rows[3]["mean_kl"] = math.inf  # strength 1, second seed
    page = drawing(rows, [])
    (curve,) = page.plots[1]["spec"]["data"]
    assert page.plots[1]["title"] == "p, predict rows, x: what it buys and costs"
    assert (curve["x"], curve["text"]) == ([0.0, 0.2], ["undefended", "x 2"])
    assert page.notes[-1].endswith("makes the mean KL infinite, so these have no place on that axis: x 1")


def test_cap_stands_on_the_page_with_its_grid() -> None:
    """Accuracy times error, averaged over strengths by hand; one without a result somewhere has none."""

    def row(defense: str, strength: float | None, attack: str, accuracy: float, mse: float) -> dict[str, Any]:
        place = {"target": "p", "scored_set": "predict", "attack": attack, "seed": 0, "defense": defense}
        return {**place, "strength": strength, "accuracy": accuracy, "mse": mse, "blind": 0.3}

    rows = [
        *(row("undefended", 0.0, a, 0.9, e) for a, e in (("ls", 0.1), ("rcc2", 0.2))),
        *(row("noise", 1.0, a, 0.8, e) for a, e in (("ls", 0.2), ("rcc2", 0.1))),
        *(row("noise", 2.0, a, 0.5, e) for a, e in (("ls", 0.4), ("rcc2", 0.6))),
        row("withheld", None, "rcc2", 1.0, 0.3),
    ]
    (table,) = cap.tables(rows, {"noise": "sigma"})
    assert table.title == "p, predict rows: CAP, error = MSE per column"
    shown = {r[0]: dict(zip(table.heads[1:], r[1:], strict=True)) for r in table.rows}
    assert shown["noise"] == {
        "grid": "sigma = 1, 2",
        "accuracy": "0.650",
        "ls": "0.180",  # (.8 · .2 + .5 · .4) / 2
        "rcc2": "0.190",  # (.8 · .1 + .5 · .6) / 2
        "best attack": "0.140",  # (.8 · .1 + .5 · .4) / 2
        "min(best, blind)": "0.115",  # (.8 · .1 + .5 · .3) / 2
        "blind alone": "0.195",  # (.8 + .5) · .3 / 2
    }
    assert [shown["undefended"][k] for k in ("grid", "ls", "best attack")] == ["–", "0.090", "0.090"]
    assert [shown["withheld"][k] for k in ("grid", "ls", "best attack")] == ["–", "–", "0.300"]
    labels = [{**r, "label_accuracy": 1 - r["mse"], "blind": 0.7, "adversary": "q"} for r in rows]
    (named,) = cap.tables(labels, {"noise": "sigma"})
    assert named.title == "labels of p, named by q, predict rows: CAP, error = share of wrong labels"
    assert named.rows == table.rows
    assert cap.tables([{**r, "accuracy": None} for r in rows], {}) == []


def _predicted(defense: str, strength: float, r2: float, mse: float) -> dict[str, Any]:
    place = {"target": "p", "scored_set": "predict", "attack": "ls", "seed": 0, "defense": defense}
    errors = {"strength": strength, "mse": mse, "blind": 0.3, "relative": mse / 0.3}
    return {**place, **errors, "r2": r2, "r2_alone": 0.1, "rmse": 5.0}


def test_a_number_has_r2_where_classes_have_their_accuracy() -> None:
    """On the axis as it is; in CAP 0 where the defended model is worse than the mean."""
    rows = [
        _predicted("undefended", 0.0, 0.6, 0.1),
        *(_predicted("noise", s, r2, e) for s, r2, e in ((1.0, 0.4, 0.2), (2.0, -5.0, 0.3))),
        _predicted("cut", 1.0, 0.5, 0.15),
    ]
    plots = {p["title"]: p["spec"] for p in drawing(rows, []).plots}
    noise = plots["p, predict rows, noise: what it buys and costs"]
    assert noise["layout"]["xaxis"]["title"]["text"] == "R²"
    assert noise["data"][0]["x"] == [0.6, 0.4, -5.0]
    beside = plots["p, predict rows, ls: the defences beside each other"]
    assert [curve["x"] for curve in beside["data"] if curve["name"] in ("noise", "cut")] == [
        [0.6, 0.4, -5.0],
        [0.6, 0.5],
    ]
    (table,) = cap.tables(rows, {"noise": "sigma"})
    shown = {r[0]: dict(zip(table.heads[1:], r[1:], strict=True)) for r in table.rows}
    assert (shown["noise"]["R²"], shown["noise"]["ls"]) == ("0.200", "0.040")  # (.4 + 0)/2, (.4 · .2 + 0)/2
    assert explorer.explained(1)["words"]["r2_gain"] == "R² gained"


def _labelled(defense: str, strength: float, auc: float, attack: str = "pmc") -> dict[str, Any]:
    place = {"target": "active", "adversary": "p", "scored_set": "train", "attack": attack, "seed": 0}
    errors = {"relative": 0.8 * strength, "label_accuracy": 1 - 0.4 * strength, "blind": 0.5}
    figures = {**errors, "label_auc": 1 - strength / 4, "accuracy": 0.9, "auc": auc}
    return {**place, "defense": defense, "strength": strength, **figures}


def test_defences_stand_in_one_plot_per_attack_with_the_level_of_a_blind_guess() -> None:
    rows = [
        _labelled(defense, strength, auc, attack)
        for attack in ("pmc", "norm_scoring")
        for defense, strength, auc in (
            ("undefended", 0.0, 0.97), ("x", 1.0, 0.95), ("x", 2.0, 0.9), ("y", 1.0, 0.8)
        )
    ]  # fmt: skip
    shown = {
        (p["title"], p["spec"]["layout"]["yaxis"]["title"]["text"]): p["spec"]
        for p in drawing(rows, []).plots[1:]
    }
    where = "labels of active, named by p, train rows"
    beside = f"{where}, pmc: the defences beside each other"
    ranked = shown[beside, "AUC of the attack on labels"]
    assert ranked["layout"]["xaxis"]["title"]["text"] == "AUC of the federation"
    assert [(c["name"], c["x"], c["y"]) for c in ranked["data"]] == [
        ("x", [0.97, 0.95, 0.9], [1.0, 0.75, 0.5]),
        ("y", [0.97, 0.8], [1.0, 0.75]),
    ]
    assert ranked["data"][0]["text"] == ["undefended", "x 1", "x 2"]
    wrong = shown[beside, "error / blind error"]
    assert [c["y"] for c in wrong["data"]] == [pytest.approx([0.0, 0.8, 1.6]), pytest.approx([0.0, 0.8])]
    alone = shown[f"{where}, x: what it buys and costs", "error / blind error"]
    assert [c["name"] for c in alone["data"]] == ["pmc", "norm_scoring"]
    for spec, level in ((ranked, 0.5), (wrong, 1.0), (alone, 1.0)):
        (line,) = spec["layout"]["shapes"]
        assert (line["y0"], line["y1"]) == (level, level)
    one = drawing([r for r in rows if r["defense"] != "y"], []).plots  # one defence has its own plot already
    assert not [p for p in one if "beside" in p["title"] and "blind error" in str(p["spec"]["layout"])]


def test_one_seed_is_given_no_interval() -> None:
    page = drawing([measured(0.0, 0, 0.0), measured(1.0, 0, 0.1)], [])
    assert "One seed gives no interval." in page.lead
    (words,) = {w.partition("<br>")[2] for w in page.plots[0]["spec"]["data"][0]["customdata"]}
    assert words == ".500 of blind, 1 seed"


def test_a_cell_that_was_not_scored_is_empty_on_the_heat_map() -> None:
    row = {"target": "p", "scored_set": "predict", "seed": 0, "mse": 1.0, "blind": 2.0}
    rows = [
        {**row, "defense": "undefended", "strength": 0.0, "attack": "ls", "relative": 0.5},
        {**row, "defense": "x", "strength": 1.0, "attack": "ls", "relative": math.inf, "blind": 0.0},
    ]
    heat = drawing(rows, []).plots[0]["spec"]["data"][0]
    assert (heat["x"], heat["text"]) == ([0], ["50 %"])
