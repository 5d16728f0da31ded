#!/bin/sh
# XGBoost 3.2.0, tree_method "hist" (the default) and "exact".
# Guess: a threshold in a saved model lies midway between two values of the training table.
# Behaviour: that of "exact" does, but each one of "hist" is a value that a training row has, to the last bit.
# Whoever has the file has exact values of people: here of 36 splits, 36.
# Output seen: hist: 36 of 36 thresholds are values of rows; exact: 1 of 38
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check --no-deps xgboost==3.2.0 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 venv/bin/python - <<'END'
import json

import numpy as np
import xgboost

rng = np.random.default_rng(0)
x = np.round(rng.normal(50, 10, (300, 3)), 2).astype(np.float32)
y = (x[:, 0] + rng.normal(0, 5, 300) > 50).astype(float)


def shares(method):
    params = {"objective": "binary:logistic", "max_depth": 4, "tree_method": method, "gamma": 1.0}
    xgboost.train(params, xgboost.DMatrix(x, y), 5).save_model("model.json")
    trees = json.load(open("model.json"))["learner"]["gradient_booster"]["model"]["trees"]
    found = [
        bool((x[:, feature] == np.float32(threshold)).any())
        for tree in trees
        for left, feature, threshold in zip(tree["left_children"], tree["split_indices"], tree["split_conditions"])
        if left >= 0
    ]
    return sum(found), len(found)


hist, exact = shares("hist"), shares("exact")
print(f"hist: {hist[0]} of {hist[1]} thresholds are values of rows; exact: {exact[0]} of {exact[1]}")
assert hist[0] == hist[1] > 20
assert exact[0] < exact[1] / 10
END
