"""Train XGBoost's models with the options that people use: ``train.py FOLDER [--of-each N] [--small]``.

Each gets a file as ``save_model`` writes it. ``truth.npz`` holds the rows that trained it: ``NAME:x`` float32
(n, D), ``NAME:y`` (n,) and ``NAME:leaf`` int (n, k), the leaf of each row in the first tree of each score.
``zoo.json`` says of each the option, and whether no row had a weight or a base margin and every tree saw the
same rows (``equal``). It runs in an environment of its own, with XGBoost and numpy.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xgboost  # type: ignore[import-not-found,unused-ignore]

SEED = 20261128
Rng = np.random.Generator
Array = np.ndarray[Any, Any]
Params = dict[str, Any]


@dataclass
class Plan:
    """One training: ``params`` of XGBoost, ``trees``, the table, and what its rows and trees have."""

    params: Params
    trees: int
    x: Array
    y: Array
    rows: Params = field(default_factory=dict)  # of DMatrix
    equal: bool = True
    then: str = ""


def plain(rng: Rng, small: bool) -> Plan:
    """A table of 20 to 5,000 rows with two classes, and options drawn from the usual ones."""
    n = int(np.exp(rng.uniform(np.log(20), np.log(90 if small else 5000))))
    columns = int(rng.integers(2, 4 if small else 7))
    x = np.rint(rng.normal(40, 15, (n, columns)))
    if not small:
        x += np.where(rng.random(columns) < 0.5, rng.normal(0, 1, (n, columns)), 0)
    x[:, 0] = rng.random(n) < 0.4
    logit = (x - x.mean(axis=0)) / 15 @ rng.normal(0, 1.5, columns) + rng.normal(0, 1)
    y = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(float)
    y[:2] = 0, 1  # both classes
    params = {
        "objective": "binary:logistic",
        "eta": float(rng.choice([0.03, 0.1, 0.3, 0.5])),
        "max_depth": int(rng.integers(1, 4 if small else 7)),
        "lambda": float(rng.choice([0.5, 1, 1, 3])),
        "min_child_weight": float(rng.choice([0, 1, 1, 5])),
    }
    return Plan(params, int(rng.choice([1, 2, 4] if small else [1, 2, 5, 10, 30])), x.astype(np.float32), y)


def several(rng: Rng, plan: Plan) -> None:
    """Three or four classes by the columns."""
    k = int(rng.integers(3, 5))
    ranks = (plan.x @ rng.normal(0, 1, plan.x.shape[1])).argsort().argsort()
    plan.y = (ranks * k // len(ranks)).astype(float)
    plan.params["num_class"] = k


def numbers(rng: Rng, plan: Plan) -> None:
    """A label that is a number."""
    plan.params["objective"] = "reg:squarederror"
    values = plan.x @ rng.normal(0, 1, plan.x.shape[1]) + rng.normal(0, 5, len(plan.x))
    plan.y = np.round(values * rng.choice([1, 10, 1000]), 1)


Change = Callable[[Rng, Plan], None]


def with_params(**choices: list[Any]) -> Change:
    """Each drawn from its choices."""

    def change(rng: Rng, plan: Plan) -> None:
        plan.params |= {name: of[int(rng.integers(len(of)))] for name, of in choices.items()}

    return change


def with_weights(draw: Callable[[Rng, int], Array]) -> Change:
    def change(rng: Rng, plan: Plan) -> None:
        plan.rows["weight"], plan.equal = draw(rng, len(plan.y)), False

    return change


def drawn(**choices: list[Any]) -> Change:
    """Options by which each tree sees other rows."""

    def change(rng: Rng, plan: Plan) -> None:
        with_params(**choices)(rng, plan)
        plan.equal = False

    return change


def both(*changes: Change) -> Change:
    def change(rng: Rng, plan: Plan) -> None:
        for one in changes:
            one(rng, plan)

    return change


def then(what: str, equal: bool = True) -> Change:
    """What :func:`trained` does besides."""

    def change(rng: Rng, plan: Plan) -> None:
        plan.then, plan.equal = what, plan.equal and equal
        plan.trees = max(plan.trees, 4)

    return change


def missing(rng: Rng, plan: Plan) -> None:
    plan.x[rng.random(plan.x.shape) < rng.choice([0.02, 0.2])] = np.nan


def monotone(rng: Rng, plan: Plan) -> None:
    signs = rng.integers(-1, 2, plan.x.shape[1]).tolist()
    plan.params["monotone_constraints"] = f"({','.join(map(str, signs))})"


def ratio(rng: Rng, plan: Plan) -> None:
    """XGBoost's own advice for rare positives."""
    plan.params["scale_pos_weight"] = float((plan.y == 0).sum() / (plan.y == 1).sum())


def margins(rng: Rng, plan: Plan) -> None:
    plan.rows["base_margin"], plan.equal = rng.normal(0, 1, len(plan.y)), False


def halves(rng: Rng, plan: Plan) -> None:
    """Labels between the classes, which the loss takes."""
    plan.params["objective"], plan.equal = "reg:logistic", False
    plan.y[rng.random(len(plan.y)) < 0.3] = 0.5


def mixture(rng: Rng, plan: Plan) -> None:
    """Three options together, by none of which a row weighs more or is left out of a tree."""
    free = [name for name in OPTIONS if name not in NOT_MIXED]
    for name in rng.choice(free, 3, replace=False):
        OPTIONS[str(name)](rng, plan)
    if plan.params.get("tree_method") == "exact":  # it has neither
        plan.params |= {"colsample_bynode": 1.0, "grow_policy": "depthwise"}


NOT_MIXED: set[str] = set()
OPTIONS: Mapping[str, Change] = {
    "plain": both(),
    "one tree": lambda rng, plan: setattr(plan, "trees", 1),
    "depth 1": with_params(max_depth=[1]),
    "depth 6": with_params(max_depth=[6], min_child_weight=[0, 1]),
    "eta 1": with_params(eta=[1.0]),
    "lambda 0": with_params(**{"lambda": [0.0]}),
    "lambda 10": with_params(**{"lambda": [10.0]}),
    "alpha": with_params(alpha=[0.01, 0.5, 2.0]),
    "gamma": with_params(gamma=[0.1, 1.0, 3.0]),
    "max_delta_step": with_params(max_delta_step=[0.1, 0.7, 1.0]),
    "exact": with_params(tree_method=["exact"], gamma=[0.0, 1.0]),
    "approx": with_params(tree_method=["approx"]),
    "lossguide": with_params(grow_policy=["lossguide"], max_leaves=[3, 8, 31], max_depth=[0]),
    "max_bin": with_params(max_bin=[4, 16]),
    "base_score": with_params(base_score=[0.01, 0.2, 0.5, 0.9]),
    "colsample": with_params(
        colsample_bytree=[0.5, 1.0], colsample_bylevel=[0.5], colsample_bynode=[0.7, 1.0]
    ),
    "monotone": monotone,
    "dart": with_params(
        booster=["dart"], rate_drop=[0.1, 0.5], skip_drop=[0.0, 0.5], normalize_type=["tree", "forest"]
    ),
    "early stopping": then("stop"),
    "num_parallel_tree": with_params(num_parallel_tree=[2, 5], colsample_bynode=[0.5, 1.0]),
    "learning rates": then("schedule"),
    "continued": then("continue"),
    "slice": then("slice"),
    "scale_pos_weight whole": with_params(scale_pos_weight=[2.0, 3.0, 4.0, 10.0]),
    "scale_pos_weight fraction": with_params(scale_pos_weight=[0.5, 1.5, 3.5, 2.3]),
    "scale_pos_weight ratio": ratio,
    "reg:logistic": with_params(objective=["reg:logistic"]),
    "binary:logitraw": with_params(objective=["binary:logitraw"]),
    "multi:softprob": both(several, with_params(objective=["multi:softprob"])),
    "multi:softmax": both(several, with_params(objective=["multi:softmax"])),
    "softprob forest": both(several, with_params(objective=["multi:softprob"], num_parallel_tree=[3])),
    "reg:squarederror": numbers,
    "squared error dart": both(numbers, with_params(booster=["dart"], rate_drop=[0.3])),
    "squared error depth 1": both(numbers, with_params(max_depth=[1], alpha=[0.0, 1.0])),
    "squared error stopped": both(numbers, then("stop")),
    "missing": missing,
    "missing scale_pos_weight": both(missing, with_params(scale_pos_weight=[2.0, 1.5])),
    "squared error missing": both(numbers, missing),
    "mixture": mixture,
    "mixture 2": mixture,
    "mixture 3": mixture,
    "weights whole": with_weights(lambda rng, n: rng.integers(1, 4, n).astype(float)),
    "weights constant": with_weights(lambda rng, n: np.full(n, 2.0)),
    "weights fraction": with_weights(lambda rng, n: rng.uniform(0.2, 2, n)),
    "weights zero": with_weights(lambda rng, n: (rng.random(n) < 0.8).astype(float)),
    "softprob weights": both(
        several,
        with_params(objective=["multi:softprob"]),
        with_weights(lambda rng, n: rng.integers(1, 3, n) * 1.0),
    ),
    "squared error weights": both(numbers, with_weights(lambda rng, n: rng.integers(1, 3, n) * 1.0)),
    "subsample": drawn(subsample=[0.5, 0.9, 0.97]),
    "squared error subsample": both(numbers, drawn(subsample=[0.5, 0.9])),
    "random forest": drawn(subsample=[0.8], num_parallel_tree=[4], eta=[1.0]),
    "base_margin": margins,
    "labels of a half": halves,
    "continued elsewhere": then("others", equal=False),
}
_FIRST_NOT = list(OPTIONS).index("multi:softprob")
NOT_MIXED |= {"plain", "base_score", "slice", *list(OPTIONS)[_FIRST_NOT:]}


def trained(plan: Plan, rng: Rng) -> Any:
    """The booster of a plan, as ``plan.then`` says."""
    rows = xgboost.DMatrix(plan.x, plan.y, **plan.rows)
    rows.feature_names = [f"f{j}" for j in range(plan.x.shape[1])]
    train: Params = {"num_boost_round": plan.trees}
    if plan.then == "stop":
        held = np.arange(len(plan.y)) % 3 == 0
        other = xgboost.DMatrix(plan.x[held], plan.y[held][rng.permutation(held.sum())])
        other.feature_names = rows.feature_names
        train |= {"evals": [(other, "held")], "early_stopping_rounds": 3, "verbose_eval": False}
    if plan.then == "schedule":
        rate = float(rng.choice([0.5, 0.9, 0.9999]))
        train["callbacks"] = [xgboost.callback.LearningRateScheduler(lambda t: 0.3 * rate**t)]
    booster = xgboost.train(plan.params, rows, **train)
    if plan.then in ("continue", "others"):
        if plan.then == "others":
            part = rng.permutation(len(plan.y))[: max(2, len(plan.y) // 2)]
            rows = rows.slice(part)
        booster = xgboost.train(plan.params, rows, 3, xgb_model=booster)
    return booster[1:] if plan.then == "slice" else booster


def first_leaves(booster: Any, x: Array, scores: int, parallel: int) -> Array:
    """The leaf of each row in the first tree of each score (n, k)."""
    rows = xgboost.DMatrix(x)
    rows.feature_names = booster.feature_names
    leaves = booster.predict(rows, pred_leaf=True, iteration_range=(0, 1)).reshape(len(x), -1)
    first: Array = leaves[:, : scores * parallel : parallel].astype(np.int16)
    return first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--of-each", type=int, default=12, help="models of each option")
    parser.add_argument("--small", action="store_true", help="few rows, few trees")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    facts: Params = {}
    truth: Params = {}
    for at, (option, change) in enumerate(OPTIONS.items()):
        for number in range(asked.of_each):
            rng = np.random.default_rng([SEED, at, number])
            plan = plain(rng, asked.small)
            change(rng, plan)
            booster = trained(plan, rng)
            end = "ubj" if asked.small or number % 2 else "json"
            name = f"{option.replace(':', '_').replace(' ', '_')}-{number}.{end}"
            booster.save_model(asked.folder / name)
            scores, parallel = (plan.params.get(key, 1) for key in ("num_class", "num_parallel_tree"))
            truth |= {f"{name}:x": plan.x, f"{name}:y": plan.y}
            truth[f"{name}:leaf"] = first_leaves(booster, plan.x, scores, parallel)
            facts[name] = {
                "option": option,
                "equal": plan.equal,
                "missing": bool(np.isnan(plan.x).any()),
                "params": {**plan.params, "trees": plan.trees},
            }
    np.savez_compressed(asked.folder / "truth.npz", **truth)
    (asked.folder / "zoo.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    print(f"{len(facts)} models of {len(OPTIONS)} options in {asked.folder}")


if __name__ == "__main__":
    main()
