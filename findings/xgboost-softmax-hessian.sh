#!/bin/sh
# XGBoost 3.2.0, multi:softprob.
# Guess: sum_hessian of a node is the sum of p (1 - p) over its rows, the second derivative of the loss.
# Behaviour: it is twice that, so that number of rows, min_child_weight and lambda mean other things than with
# binary:logistic. Whoever divides by p (1 - p) counts each row twice.
# Output seen: 300 rows, p = 1/3: sum_hessian 133.33 at the root, 66.67 expected; binary:logistic 75.00, as expected
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
label = np.arange(300) % 3


def root(params, y):
    xgboost.train({"max_depth": 2, **params}, xgboost.DMatrix(x, y), 1).save_model("model.json")
    trees = json.load(open("model.json"))["learner"]["gradient_booster"]["model"]["trees"]
    return trees[0]["sum_hessian"][0]


softmax = root({"objective": "multi:softprob", "num_class": 3}, label)
logistic = root({"objective": "binary:logistic", "base_score": 0.5}, label == 0)
print(f"300 rows, p = 1/3: sum_hessian {softmax:.2f} at the root, {300 * 2 / 9:.2f} expected; "
      f"binary:logistic {logistic:.2f}, as expected")
assert abs(softmax - 2 * 300 * 2 / 9) < 1e-3 and abs(logistic - 300 / 4) < 1e-3
END
