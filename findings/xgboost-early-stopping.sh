#!/bin/sh
# XGBoost 3.2.0, XGBClassifier with early_stopping_rounds.
# Guess: save_model ends the file at the best iteration, and whatever loads it gives the same scores.
# Behaviour: the file keeps all trees and names best_iteration. XGBClassifier, also after load_model, stops there;
# Booster.predict on the same file adds all trees. So one file has two scores for a person.
# Output seen: 12 trees in the file, best_iteration 8; the two scores of a row differ by up to .129
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check --no-deps xgboost==3.2.0 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.7.2 joblib==1.6.0 cloudpickle==3.1.3 threadpoolctl==3.8.0
cd "$folder"
OMP_NUM_THREADS=1 venv/bin/python - <<'END'
import json

import numpy as np
import xgboost

rng = np.random.default_rng(0)
x = np.round(rng.normal(50, 10, (300, 3)), 2)
y = (x[:, 0] + rng.normal(0, 5, 300) > 50).astype(float)
options = {"n_estimators": 60, "early_stopping_rounds": 3, "max_depth": 6, "learning_rate": 0.5, "n_jobs": 1}
model = xgboost.XGBClassifier(**options, eval_metric="logloss")
model.fit(x[:200], y[:200], eval_set=[(x[200:], y[200:])], verbose=False).save_model("model.json")
learner = json.load(open("model.json"))["learner"]
trees, best = len(learner["gradient_booster"]["model"]["trees"]), int(learner["attributes"]["best_iteration"])
loaded = xgboost.XGBClassifier()
loaded.load_model("model.json")
by_wrapper = loaded.predict_proba(x)[:, 1]
by_booster = xgboost.Booster(model_file="model.json").predict(xgboost.DMatrix(x))
off = np.abs(by_wrapper - by_booster).max()
print(f"{trees} trees in the file, best_iteration {best}; the two scores of a row differ by up to {off:.3f}")
assert trees > best + 1 and off > 0.05
END
