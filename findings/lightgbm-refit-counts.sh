#!/bin/sh
# LightGBM 4.6.0, Booster.refit on the table of other people.
# Guess: leaf_count and leaf_weight are those of the new rows, as the leaf values are.
# Behaviour: refit writes new leaf values and the new table's feature_infos, and leaves leaf_count and leaf_weight as
# they were. One file counts the old people, beside the extremes of the new ones, and no parameter in it tells.
# Output seen: 400 old rows, 1000 new: leaf_count sums to 400, largest value of column 0: 84.7, that of the new rows
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check --no-deps --no-compile lightgbm==4.6.0 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 venv/bin/python - <<'END'
import lightgbm
import numpy as np

rng = np.random.default_rng(0)


def table(rows, middle):
    x = np.round(rng.normal(middle, 10, (rows, 3)), 1)
    return x, (x[:, 0] + rng.normal(0, 5, rows) > middle).astype(float)


def facts(booster):
    """The lines of the head and of the last tree, and the parameters."""
    trees, _, parameters = booster.model_to_string().partition("\nparameters:")
    return dict(line.split("=", 1) for line in trees.splitlines() if "=" in line) | {"parameters": parameters}


(x, y), (new, labels) = table(400, 50), table(1000, 55)
quiet = {"objective": "binary", "verbose": -1, "num_threads": 1, "num_leaves": 5, "seed": 1}
before = lightgbm.train(quiet, lightgbm.Dataset(x, y), 3)
after = before.refit(new, labels)
old, now = facts(before), facts(after)
rows = sum(map(int, now["leaf_count"].split()))
largest = float(now["feature_infos"].split()[0].strip("[]").split(":")[1])
print(f"400 old rows, 1000 new: leaf_count sums to {rows}, largest value of column 0: {largest:.1f}, that of the new "
      "rows")
assert now["leaf_count"] == old["leaf_count"] and now["leaf_weight"] == old["leaf_weight"] and rows == 400
assert now["parameters"] == old["parameters"] and now.keys() == old.keys()
assert now["leaf_value"] != old["leaf_value"] and np.isclose(largest, new[:, 0].max()) and largest != x[:, 0].max()
END
