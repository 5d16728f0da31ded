#!/bin/sh
# LightGBM 4.6.0, binary loss, boost_from_average (the default).
# Guess: the score that trees begin from stands in a field of its own, as XGBoost's base_score does.
# Behaviour: no field has it. It is added to every leaf of the first tree, whose shrinkage is said to be 1. Read by the
# formula of the page, that tree's gradients, and the members of its leaves, come out wrong.
# Output seen: members of class 1 in the leaves: 222 without the base, 202 with it, true 202
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check --no-deps lightgbm==4.6.0 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 venv/bin/python - <<'END'
import numpy as np
import lightgbm

rng = np.random.default_rng(0)
x = np.round(rng.normal(50, 10, (400, 4)), 2)
x[:, 3] = np.round(rng.normal(1e5, 3e4, 400))
y = (x[:, 0] + rng.normal(0, 5, 400) > 50).astype(float)
quiet = {"objective": "binary", "verbose": -1, "num_threads": 1, "num_leaves": 5, "seed": 1}

booster = lightgbm.train({**quiet, "learning_rate": 0.1}, lightgbm.Dataset(x, y), 1)
facts = dict(line.split("=", 1) for line in booster.model_to_string().splitlines() if "=" in line)
value, hessian, rows = (np.array(facts[f"leaf_{part}"].split(), float) for part in ("value", "weight", "count"))
p = y.mean()
base = np.log(p / (1 - p))
members = [rows * p + (value - off) / 0.1 * hessian for off in (0, base)]
print(f"members of class 1 in the leaves: {members[0].sum():.0f} without the base, {members[1].sum():.0f} with it, "
      f"true {y.sum():.0f}")
leaf = booster.predict(x, pred_leaf=True).ravel()
true = np.bincount(leaf, y)
assert np.abs(members[1] - true).max() < 1e-3 < 0.5 < np.abs(members[0] - true).max()
assert facts["shrinkage"] == "1"
END
