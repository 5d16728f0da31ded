#!/bin/sh
# CatBoost 1.2.10, a model saved as JSON.
# Guess: leaf_weights are numbers of rows, as LightGBM's leaf_count is: of the rows drawn, where subsample draws half,
# and untouched by class weights.
# Behaviour: the other way about. With subsample they are those of all rows, so that row sampling hides no count. With
# class weights they are sums of weights, often whole numbers, which nothing in the leaf tells from numbers of people.
# Output seen: 400 rows, 202 of class 1: plain 400, subsample .5 400, class_weights [1, 3] 804
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check --no-deps catboost==1.2.10 numpy==2.4.6 scipy==1.17.1 pandas==2.3.3 python-dateutil==2.9.0.post0 pytz==2025.2 tzdata==2025.2 six==1.17.0
cd "$folder"
OMP_NUM_THREADS=1 venv/bin/python - <<'END'
import json

import numpy as np
from catboost import CatBoostClassifier

rng = np.random.default_rng(0)
x = rng.normal(0, 1, (400, 4))
y = np.zeros(400, int)
y[x[:, 0].argsort()[-202:]] = 1


def sums(**options):
    quiet = {"verbose": 0, "allow_writing_files": False, "random_seed": 1, "thread_count": 1}
    CatBoostClassifier(iterations=3, depth=3, **quiet, **options).fit(x, y).save_model("model.json", format="json")
    return [sum(tree["leaf_weights"]) for tree in json.load(open("model.json"))["oblivious_trees"]]


plain, drawn = sums(), sums(bootstrap_type="Bernoulli", subsample=0.5)
weighed = sums(class_weights=[1, 3])
print(f"400 rows, 202 of class 1: plain {plain[0]:.0f}, subsample .5 {drawn[0]:.0f}, "
      f"class_weights [1, 3] {weighed[0]:.0f}")
assert set(plain) == set(drawn) == {400} and set(weighed) == {198 + 3 * 202}
END
