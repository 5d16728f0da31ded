"""Train models of LightGBM, CatBoost and scikit-learn's HistGradientBoosting: ``train_others.py FOLDER``.

The folder is as ``train.py`` writes it, with ``NAME:x`` float64 and ``NAME:raw``, its scores. It runs in an
environment of its own: lightgbm==4.7.0 catboost==1.2.10 scikit-learn==1.9.1.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import catboost  # type: ignore[import-not-found,unused-ignore]
import lightgbm  # type: ignore[import-not-found,unused-ignore]
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from export_hist_gradient import export  # type: ignore[import-not-found,unused-ignore]

SEED = 20261128
Rng = np.random.Generator
Array = np.ndarray[Any, Any]
Params = dict[str, Any]


@dataclass
class Plan:
    """One training: ``params``, ``trees``, the table, what its rows have; ``kind`` of the label."""

    rng: Rng
    small: bool
    params: Params = field(default_factory=dict)
    rows: Params = field(default_factory=dict)
    equal: bool = True
    kind: str = "two"
    then: str = ""
    text: bool = True

    def __post_init__(self) -> None:
        rng, small = self.rng, self.small
        n = int(np.exp(rng.uniform(np.log(25), np.log(90 if small else 4000))))
        columns = int(rng.integers(2, 4 if small else 7))
        self.x = np.rint(rng.normal(40, 15, (n, columns)))
        self.x += np.where(rng.random(columns) < 0.5, rng.normal(0, 1, (n, columns)), 0).round(3)
        self.x[:, 0] = rng.random(n) < 0.4
        self.trees = int(rng.choice([2, 3] if small else [1, 2, 5, 10, 30]))
        self.labelled("two")

    @property
    def names(self) -> list[str]:
        """Those of the columns, as in the audited table."""
        return [f"f{j}" for j in range(self.x.shape[1])]

    def labelled(self, kind: str) -> None:
        """Labels of two, or several, classes, or numbers."""
        x, rng = self.x, self.rng
        self.kind = kind
        by = (x - x.mean(axis=0)) / 15 @ rng.normal(0, 1.5, x.shape[1]) + rng.normal(0, 1)
        self.y = (rng.random(len(x)) < 1 / (1 + np.exp(-by))).astype(float)
        if kind == "several":
            self.y = (by.argsort().argsort() * int(rng.integers(3, 5)) // len(by)).astype(float)
        if kind == "number":
            self.y = np.round((by + rng.normal(0, 0.3, len(x))) * rng.choice([1, 10, 1000]), 1)
        if kind != "number":
            self.y[:2] = 0, 1


Change = Callable[[Plan], None]


def params(equal: bool = True, **choices: list[Any]) -> Change:
    """Each drawn from its choices."""

    def change(plan: Plan) -> None:
        plan.params |= {name: of[int(plan.rng.integers(len(of)))] for name, of in choices.items()}
        plan.equal &= equal

    return change


def both(*changes: Change) -> Change:
    def change(plan: Plan) -> None:
        for one in changes:
            one(plan)

    return change


def label(kind: str) -> Change:
    return lambda plan: plan.labelled(kind)


def then(what: str, equal: bool = True) -> Change:
    def change(plan: Plan) -> None:
        plan.then, plan.equal, plan.trees = what, plan.equal and equal, max(4, plan.trees)

    return change


def weights(draw: Callable[[Rng, int], Array]) -> Change:
    def change(plan: Plan) -> None:
        plan.rows["weight"], plan.equal = draw(plan.rng, len(plan.y)), False

    return change


def missing(plan: Plan) -> None:
    plan.x[plan.rng.random(plan.x.shape) < plan.rng.choice([0.02, 0.2])] = np.nan


def one_tree(plan: Plan) -> None:
    plan.trees = 1


def rising(plan: Plan) -> None:
    plan.params["monotone_constraints"] = [1] * plan.x.shape[1]


WHOLE = weights(lambda rng, n: rng.integers(1, 4, n).astype(float))
TWICE = weights(lambda rng, n: np.full(n, 2.0))
PARTS = weights(lambda rng, n: rng.uniform(0.2, 2, n))
OF_ALL: Mapping[str, Change] = {
    "plain": both(),
    "one tree": one_tree,
    "several": label("several"),
    "number": label("number"),
    "missing": missing,
    "number missing": both(label("number"), missing),
    "weights whole": WHOLE,
    "weights constant": TWICE,
    "weights fraction": PARTS,
    "several weights": both(label("several"), WHOLE),
    "number weights": both(label("number"), PARTS),
    "early stopping": then("stop"),
    "monotone": rising,
    "number monotone": both(label("number"), rising),
}
LIGHTGBM: Mapping[str, Change] = {
    **OF_ALL,
    "leaves 31": params(num_leaves=[31, 63], min_data_in_leaf=[1, 3, 20]),
    "lambda_l2": params(lambda_l2=[0.5, 3.0, 10.0]),
    "several lambda_l2": both(label("several"), params(lambda_l2=[0.5, 3.0])),
    "number lambda_l2": both(label("number"), params(lambda_l2=[0.5, 3.0])),
    "lambda_l1": params(lambda_l1=[0.01, 0.5, 2.0]),
    "number lambda_l1": both(label("number"), params(lambda_l1=[0.5, 2.0])),
    "max_delta_step": params(max_delta_step=[0.1, 0.7]),
    "path_smooth": params(path_smooth=[0.5, 5.0]),
    "number path_smooth": both(label("number"), params(path_smooth=[0.5, 5.0])),
    "scale_pos_weight": params(scale_pos_weight=[2.0, 3.5, 10.0]),
    "is_unbalance": params(is_unbalance=[True]),
    "no average": params(boost_from_average=[False]),
    "number no average": both(label("number"), params(boost_from_average=[False])),
    "several no average": both(label("several"), params(boost_from_average=[False])),
    "bagging": params(False, bagging_fraction=[0.5, 0.9], bagging_freq=[1, 2]),
    "number bagging": both(label("number"), params(False, bagging_fraction=[0.5, 0.9], bagging_freq=[1])),
    "goss": params(False, data_sample_strategy=["goss"]),
    "dart": params(boosting=["dart"], drop_rate=[0.1, 0.5]),
    "number dart": both(label("number"), params(boosting=["dart"], drop_rate=[0.5])),
    "rf": params(False, boosting=["rf"], bagging_fraction=[0.7], bagging_freq=[1]),
    "quantized": params(use_quantized_grad=[True]),
    "extra_trees": params(extra_trees=[True], feature_fraction=[0.5, 1.0]),
    "eta 1": params(learning_rate=[1.0]),
    "rates": then("schedule"),
    "number rates": both(label("number"), then("schedule")),
    "continued": then("continue"),
    "init score": then("margin", equal=False),
    "depth 1": params(num_leaves=[2]),
    "max_bin": params(max_bin=[4, 16]),
    "linear_tree": both(label("number"), params(linear_tree=[True])),
    "zero_as_missing": params(zero_as_missing=[True]),
}
CATBOOST: Mapping[str, Change] = {
    **OF_ALL,
    "defaults": lambda plan: plan.params.update(iterations=100, learning_rate=None),
    "steps": params(leaf_estimation_iterations=[2, 5, 10], leaf_estimation_method=["Newton"]),
    "gradient": params(leaf_estimation_iterations=[1, 5], leaf_estimation_method=["Gradient"]),
    "number steps": both(label("number"), params(leaf_estimation_iterations=[2, 5])),
    "l2": params(l2_leaf_reg=[0.5, 10.0]),
    "depth 6": params(depth=[6], boosting_type=["Plain", "Ordered"]),
    "ordered": params(boosting_type=["Ordered"]),
    "bayesian": params(bootstrap_type=["Bayesian"]),
    "bernoulli": params(bootstrap_type=["Bernoulli"], subsample=[0.5, 0.9]),
    "class_weights": params(class_weights=[[1, 2], [1, 3.5]]),
    "auto weights": params(auto_class_weights=["Balanced"]),
    "scale_pos_weight": params(scale_pos_weight=[2.0, 3.5]),
    "average": params(boost_from_average=[True]),
    "number no average": both(label("number"), params(boost_from_average=[False])),
    "shrunk": params(model_shrink_rate=[0.1]),
    "baseline": then("margin", equal=False),
    "langevin": params(langevin=[True]),
    "lossguide": params(grow_policy=["Lossguide"]),
}
SKLEARN: Mapping[str, Change] = {
    **OF_ALL,
    "leaves 5": params(max_leaf_nodes=[5], min_samples_leaf=[1, 5]),
    "l2": params(l2_regularization=[0.5, 3.0]),
    "several l2": both(label("several"), params(l2_regularization=[0.5, 3.0])),
    "number l2": both(label("number"), params(l2_regularization=[0.5, 3.0], min_samples_leaf=[1])),
    "eta 1": params(learning_rate=[1.0]),
    "max_features": params(max_features=[0.5]),
    "balanced": params(False, class_weight=["balanced"]),
    "warm": then("continue"),
}
#: What ``tests/zoo/others`` keeps.
RECORDED = {
    "lightgbm": ("plain", "several", "number lambda_l2"),
    "catboost": ("steps", "several", "number"),
    "sklearn": ("l2", "several", "number"),
}
OPTIONS = {"lightgbm": LIGHTGBM, "catboost": CATBOOST, "sklearn": SKLEARN}


def of_lightgbm(plan: Plan, file: Path) -> tuple[Path, Array, Array]:
    """The text, or of every second model JSON, the first leaves and the scores."""
    objective = {"two": "binary", "several": "multiclass", "number": "regression"}[plan.kind]
    given = {"objective": objective, "num_leaves": 7, "min_data_in_leaf": 5, "verbose": -1, "num_threads": 1}
    given |= {"learning_rate": 0.1, "seed": 1, **plan.params}
    if plan.kind == "several":
        given["num_class"] = int(plan.y.max()) + 1
    named: Params = {"feature_name": plan.names, "params": given, "free_raw_data": False}
    rows = lightgbm.Dataset(plan.x, plan.y, **plan.rows, **named)
    more: Params = {}
    if plan.then == "margin":
        rows.set_init_score(plan.rng.normal(0, 1, len(plan.y)))
    if plan.then == "schedule":
        rate = float(plan.rng.choice([0.5, 0.9]))
        more["callbacks"] = [lightgbm.reset_parameter(learning_rate=lambda t: 0.3 * rate**t)]
    if plan.then == "stop":
        held = lightgbm.Dataset(plan.x[::3], plan.y[::3][::-1], reference=rows)
        more |= {"valid_sets": [held], "callbacks": [lightgbm.early_stopping(2, verbose=False)]}
    model = lightgbm.train(given, rows, plan.trees, **more)
    if plan.then == "continue":
        model = lightgbm.train(given, lightgbm.Dataset(plan.x, plan.y, **named), 3, init_model=model)
    scores = given.get("num_class", 1)
    leaves = model.predict(plan.x, pred_leaf=True).reshape(len(plan.x), -1)[:, :scores]
    raw = model.predict(plan.x, raw_score=True)
    if plan.text:
        model.save_model(file.with_suffix(".txt"))
        return file.with_suffix(".txt"), leaves, raw
    file.with_suffix(".json").write_text(json.dumps(model.dump_model()), encoding="utf-8")
    return file.with_suffix(".json"), leaves, raw


def of_catboost(plan: Plan, file: Path) -> tuple[Path, Array, Array]:
    """The JSON the first leaves and the scores."""
    depth = int(plan.rng.integers(1, 4))
    given: Params = {"iterations": plan.trees, "depth": depth, "verbose": 0, "random_seed": 1}
    given |= {"learning_rate": 0.3, "allow_writing_files": False, "thread_count": 1, **plan.params}
    given["loss_function"] = {"two": "Logloss", "several": "MultiClass", "number": "RMSE"}[plan.kind]
    y = plan.y if plan.kind == "number" else plan.y.astype(int)
    base = plan.rng.normal(0, 1, len(y)) if plan.then == "margin" else None
    pool = catboost.Pool(plan.x, y, baseline=base, feature_names=plan.names, **plan.rows)
    held = catboost.Pool(plan.x[::3], y[::3][::-1], feature_names=plan.names) if plan.then == "stop" else None
    model = catboost.CatBoost(given)
    model.fit(pool, eval_set=held, use_best_model=held is not None or None)
    model.save_model(str(file.with_suffix(".json")), format="json")
    leaves = model.calc_leaf_indexes(pool)[:, :1]
    return file.with_suffix(".json"), leaves, model.predict(pool, prediction_type="RawFormulaVal")


def of_sklearn(plan: Plan, file: Path) -> tuple[Path, Array, Array]:
    """The exporter's JSON the first leaves and the scores."""
    made = HistGradientBoostingRegressor if plan.kind == "number" else HistGradientBoostingClassifier
    given = {
        "max_iter": plan.trees,
        "max_leaf_nodes": 7,
        "early_stopping": plan.then == "stop",
        **plan.params,
    }
    given = {"random_state": 1, "min_samples_leaf": 5, **given}
    signs = given.pop("monotone_constraints", None)
    if given["early_stopping"]:
        given |= {"validation_fraction": None}  # it looks at the training score
    model = made(**given, monotonic_cst=signs, warm_start=plan.then == "continue")
    model.fit(plan.x, plan.y, sample_weight=plan.rows.get("weight"))
    if plan.then == "continue":
        model.set_params(max_iter=plan.trees + 3).fit(plan.x, plan.y)
    export(model, file.with_suffix(".json"))
    raw = model.predict(plan.x) if plan.kind == "number" else model.decision_function(plan.x)
    leaves = np.stack([_leaf(p.nodes, plan.x) for p in model._predictors[0]], axis=1)
    return file.with_suffix(".json"), leaves, raw


def _leaf(nodes: Any, x: Array) -> Array:
    at = np.zeros(len(x), int)
    for _ in range(len(nodes)):
        inner = ~nodes["is_leaf"][at].astype(bool)
        value = x[np.arange(len(x)), np.where(inner, nodes["feature_idx"][at], 0)]
        left = np.where(np.isnan(value), nodes["missing_go_to_left"][at], value <= nodes["num_threshold"][at])
        at = np.where(inner, np.where(left, nodes["left"][at], nodes["right"][at]), at)
    return at


TRAINED = {"lightgbm": of_lightgbm, "catboost": of_catboost, "sklearn": of_sklearn}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--of-each", type=int, default=6, help="models of each option")
    parser.add_argument("--small", action="store_true", help="few rows, few trees, of RECORDED alone")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    about, truth, failed = Params(), Params(), []
    for family, options in OPTIONS.items():
        for at, (option, change) in enumerate(options.items()):
            each = 1 if asked.small and family == "catboost" else asked.of_each  # its files are large
            for number in range(each if not asked.small or option in RECORDED[family] else 0):
                plan = Plan(np.random.default_rng([SEED, len(family), at, number]), asked.small)
                plan.text = number % 2 == 0
                change(plan)
                name = f"{family}_{option.replace(' ', '_')}-{number}"
                try:
                    file, leaf, raw = TRAINED[family](plan, asked.folder / name)
                except (ValueError, catboost.CatBoostError, lightgbm.basic.LightGBMError) as error:
                    failed.append(f"{name}: {str(error)[:90]}")
                    continue
                truth |= {
                    f"{file.name}:{k}": v
                    for k, v in (("x", plan.x), ("y", plan.y), ("leaf", leaf), ("raw", raw))
                }
                about[file.name] = {
                    "option": f"{family}: {option}",
                    "equal": plan.equal,
                    "missing": bool(np.isnan(plan.x).any()),
                    "params": {**plan.params, "trees": plan.trees},
                }
    np.savez_compressed(asked.folder / "truth.npz", **truth)
    (asked.folder / "zoo.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    print(*failed, f"{len(about)} models in {asked.folder}, {len(failed)} not trained", sep="\n")


if __name__ == "__main__":
    main()
