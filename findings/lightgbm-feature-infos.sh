#!/bin/sh
# LightGBM 4.6.0, a saved text model.
# Guess: the file names a column's values only where a tree splits it.
# Behaviour: feature_infos has the least and the largest value of every column in training, split or not, with all
# digits: the salary of the person who earns most stands in the file of a model that does not use salaries.
# Output seen: columns split: [0]; feature_infos of column 3: [6565:180783], its least and largest value
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

text = lightgbm.train({**quiet, "num_leaves": 3}, lightgbm.Dataset(x, y), 1).model_to_string()
facts = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
split, infos = sorted({int(j) for j in facts["split_feature"].split()}), facts["feature_infos"].split()
print(f"columns split: {split}; feature_infos of column 3: {infos[3]}, its least and largest value")
assert 3 not in split
for column, info in zip(x.T, infos):
    assert [float(end) for end in info.strip("[]").split(":")] == [column.min(), column.max()]
END
