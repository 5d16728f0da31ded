#!/bin/sh
# Copulas 0.14.1, GaussianMultivariate with its defaults, to_dict: the model of a synthetic table, to be shared for it.
# Guess: a few parameters a column, and no column of the training table.
# Behaviour: a column that the other families fit worse gets GaussianKDE, whose parameter is the column itself: every
# value, in the order of the rows. A 0/1 column gets it, such as a diagnosis: the model has everybody's.
# Output seen: age GaussianUnivariate, 2 numbers; ill GaussianKDE, 200 numbers, those of the table in its order: True
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check --no-deps --no-compile copulas==0.14.1 numpy==2.0.2 scipy==1.15.3 pandas==2.3.3 python-dateutil==2.9.0.post0 pytz==2025.2 tzdata==2025.2 six==1.17.0
cd "$folder"
OMP_NUM_THREADS=1 venv/bin/python -W ignore - <<'END'
import json

import numpy as np
import pandas
from copulas.multivariate import GaussianMultivariate

rng = np.random.default_rng(0)
people = pandas.DataFrame({"age": rng.normal(50, 10, 200).round(1), "ill": rng.integers(0, 2, 200)})
model = GaussianMultivariate()
model.fit(people)
parts = json.loads(json.dumps(model.to_dict()))["univariates"]
kinds = [part.pop("type").rpartition(".")[2] for part in parts]
age, ill = parts[0], parts[1]["dataset"]
same = ill == people.ill.tolist()
print(f"age {kinds[0]}, {len(age)} numbers; ill {kinds[1]}, {len(ill)} numbers, those of the table in its order: "
      f"{same}")
assert kinds == ["GaussianUnivariate", "GaussianKDE"] and len(age) == 2 and same
END
