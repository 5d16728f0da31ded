#!/bin/sh
# lifelines 0.30.3, CoxPHFitter.baseline_survival_, the curve that a paper prints beside the coefficients.
# Guess: it has the times of events only; no time at which someone was merely censored.
# Behaviour: it has a row for each time of each person, censored or not. The curve steps at events alone, so its picture
# hides them, but the table that is shared to predict has the exact follow-up time of everybody.
# Output seen: 200 people, 53 events: 53 steps, 200 rows, 147 of them times of censored people
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check --no-deps --no-compile lifelines==0.30.3 autograd==1.9.1 autograd-gamma==0.5.0 formulaic==1.2.2 interface-meta==2.0.1 narwhals==2.29.0 wrapt==2.5.2 typing_extensions==4.16.0 numpy==2.4.6 scipy==1.17.1 pandas==2.3.3 python-dateutil==2.9.0.post0 pytz==2025.2 tzdata==2025.2 six==1.17.0
cd "$folder"
OMP_NUM_THREADS=1 venv/bin/python - <<'END'
import numpy as np
import pandas
from lifelines import CoxPHFitter

rng = np.random.default_rng(0)
people = pandas.DataFrame({"x": rng.normal(0, 1, 200), "event": rng.random(200) < 0.3})
people["days"] = rng.permutation(np.arange(1, 2001))[:200] + 0.0  # no two alike
curve = CoxPHFitter().fit(people, "days", "event").baseline_survival_
steps = int((np.diff(curve.iloc[:, 0].to_numpy(), prepend=1.0) < 0).sum())
censored = int(people.days[~people.event].isin(curve.index).sum())
print(f"200 people, {people.event.sum()} events: {steps} steps, {len(curve)} rows, {censored} of them times of "
      "censored people")
assert steps == people.event.sum() and sorted(curve.index) == sorted(people.days) and censored == (~people.event).sum()
END
