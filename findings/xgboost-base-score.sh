#!/bin/sh
# XGBoost 3.2.0, binary:logistic, base_score left to XGBoost.
# Guess: it is the mean label, whatever weighs the rows.
# Behaviour: with weights it is the weighted mean. With scale_pos_weight it is no mean, but one Newton step from 1/2:
# 1 / (1 + exp(2 - 4 m)) for the weighted mean m. So the two ways to weigh one class train different models.
# Output seen: plain .4333; weights .6964 (mean .6964); scale_pos_weight .6869 (step .6869)
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
y = (np.arange(300) < 130).astype(float)


def base(params, **given):
    booster = xgboost.train({"objective": "binary:logistic", **params}, xgboost.DMatrix(x, y, **given), 1)
    booster.save_model("model.json")
    return float(json.load(open("model.json"))["learner"]["learner_model_param"]["base_score"].strip("[]"))


plain, weights, scaled = base({}), base({}, weight=np.where(y == 1, 3.0, 1.0)), base({"scale_pos_weight": 3.0})
mean = 3 * 130 / (3 * 130 + 170)
step = 1 / (1 + np.exp(2 - 4 * mean))
print(f"plain {plain:.4f}; weights {weights:.4f} (mean {mean:.4f}); scale_pos_weight {scaled:.4f} (step {step:.4f})")
assert abs(plain - 130 / 300) < 1e-5 and abs(weights - mean) < 1e-5
assert abs(scaled - step) < 1e-5 and abs(scaled - mean) > 5e-3
END
