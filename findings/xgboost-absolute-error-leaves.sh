#!/bin/sh
# XGBoost 3.2.0, reg:absoluteerror, the first tree.
# Guess: a leaf's value is -eta G / (H + lambda), as of every other loss: here -eta times a mean of signs.
# Behaviour: base_weights is that, but the leaf's value is eta times the median of the residuals. In a leaf with an
# odd number of rows, base_score plus value over eta is the label of one person, exactly.
# Output seen: 4 leaves have an odd number of rows: 4 give a label that one of their rows has
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
y = np.round(x @ [1, 2, 3] + rng.normal(0, 5, 300), 1)
rows = xgboost.DMatrix(x, y)
booster = xgboost.train({"objective": "reg:absoluteerror", "max_depth": 3, "eta": 0.3}, rows, 1)
booster.save_model("model.json")
learner = json.load(open("model.json"))["learner"]
base = float(learner["learner_model_param"]["base_score"].strip("[]"))
value = learner["gradient_booster"]["model"]["trees"][0]["split_conditions"]
leaf = booster.predict(rows, pred_leaf=True).ravel().astype(int)
odd = [node for node in np.unique(leaf) if (leaf == node).sum() % 2]
near = [np.abs(y[leaf == node] - (base + value[node] / 0.3)).min() for node in odd]
print(f"{len(odd)} leaves have an odd number of rows: {sum(off < 1e-3 for off in near)} give a label that one of "
      "their rows has")
assert len(odd) > 1 and max(near) < 1e-3
END
