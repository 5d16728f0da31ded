#!/bin/sh
# XGBoost 3.2.0, tree_method "exact" with gamma.
# Guess: what pruning cuts from a tree is not in the saved model.
# Behaviour: the cut nodes stay in the file's arrays, with the number of rows (sum_hessian) and the mean gradient
# (base_weights) of finer groups than any leaf of the model. No path leads to them. The file of "hist" has none.
# Output seen: exact: 103 nodes, 81 on paths; of those cut, 22 keep their sum_hessian. hist: 77 and 77
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


def nodes(method):
    params = {"objective": "binary:logistic", "max_depth": 4, "tree_method": method, "gamma": 1.0}
    xgboost.train(params, xgboost.DMatrix(x, y), 5).save_model("model.json")
    trees = json.load(open("model.json"))["learner"]["gradient_booster"]["model"]["trees"]
    kept = on_paths = stated = 0
    for tree in trees:
        waiting, seen = [0], set()
        while waiting:
            node = waiting.pop()
            seen.add(node)
            if tree["left_children"][node] >= 0:
                waiting += [tree["left_children"][node], tree["right_children"][node]]
        kept, on_paths = kept + len(tree["left_children"]), on_paths + len(seen)
        stated += sum(tree["sum_hessian"][i] > 0 for i in range(len(tree["sum_hessian"])) if i not in seen)
    return kept, on_paths, stated


exact, hist = nodes("exact"), nodes("hist")
print(f"exact: {exact[0]} nodes, {exact[1]} on paths; of those cut, {exact[2]} keep their sum_hessian. "
      f"hist: {hist[0]} and {hist[1]}")
assert exact[0] > exact[1] and exact[2] == exact[0] - exact[1]
assert hist[0] == hist[1]
END
