#!/bin/sh
# diffprivlib 0.6.6, tools.quantile on a column with ties.
# Guess: where most rows share a value, the quantile is near that value, and nearer as epsilon grows.
# Behaviour: it draws among the gaps between neighbours in order, by their width: a gap between equal values has none.
# A 0/1 column has one gap that is wide, so each quantile is one uniform number, the same for all tables and epsilons.
# Output seen: 95 % zeros, 5 % zeros, quantiles .25 and .75, epsilon .5 and 1: 1 answer, .715
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check --no-deps diffprivlib==0.6.6 scikit-learn==1.7.2 joblib==1.6.0 cloudpickle==3.1.3 threadpoolctl==3.8.0 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 venv/bin/python - <<'END'
import numpy as np
from diffprivlib import tools

answers = [
    tools.quantile(np.repeat([0.0, 1.0], [zeros, 1000 - zeros]), q, epsilon=epsilon, bounds=(0, 1), random_state=0)
    for zeros in (950, 50)
    for q in (0.25, 0.75)
    for epsilon in (0.5, 1.0)
]
seen = sorted({round(float(answer), 9) for answer in answers})
print(f"95 % zeros, 5 % zeros, quantiles .25 and .75, epsilon .5 and 1: {len(seen)} answer, {seen[0]:.3f}")
assert len(seen) == 1 and 0.7 < seen[0] < 0.73
END
