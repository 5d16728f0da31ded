#!/bin/sh
# LightGBM 4.6.0 with a categorical column of pandas 2.3.3.
# Guess: the model names the categories that its training rows have.
# Behaviour: it names all that the column's dtype has, those of rows that were filtered out before too: pandas keeps
# them in the dtype, and LightGBM writes the dtype. A rare value of people who did not train stands in the file.
# Output seen: trained on down, up; the file names down, rare, up
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check --no-deps lightgbm==4.6.0 numpy==2.4.6 scipy==1.17.1 pandas==2.3.3 python-dateutil==2.9.0.post0 pytz==2025.2 tzdata==2025.2 six==1.17.0
cd "$folder"
OMP_NUM_THREADS=1 venv/bin/python - <<'END'
import json

import lightgbm
import numpy as np
import pandas

rng = np.random.default_rng(0)
people = pandas.DataFrame({"a": rng.normal(0, 1, 400), "c": pandas.Categorical(rng.choice(["up", "down", "rare"], 400))})
people["y"] = people.a + rng.normal(0, 1, 400) > 0
part = people[people.c != "rare"]
params = {"objective": "binary", "verbose": -1, "num_threads": 1}
text = lightgbm.train(params, lightgbm.Dataset(part[["a", "c"]], part.y), 2).model_to_string()
line = next(line for line in text.splitlines() if line.startswith("pandas_categorical:"))
(named,) = json.loads(line.split(":", 1)[1])
print(f"trained on {', '.join(sorted(part.c.unique()))}; the file names {', '.join(named)}")
assert set(named) - set(part.c) == {"rare"}
END
