#!/bin/sh
# statsmodels 0.15.0, results.save(file, remove_data=True).
# Guess: no array of as many numbers as there were rows is left in the file.
# Behaviour: so it is for sm.OLS. A model by formula keeps the whole table that it was given, with columns that the
# formula does not name: the file of y ~ a has everybody's salary.
# Output seen: sm.OLS: 0 tables of 300 rows in the file; smf.ols("y ~ a"): a table with columns a, y, salary, all equal
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check --no-deps --no-compile statsmodels==0.15.0 patsy==1.0.3 formulaic==1.2.2 interface-meta==2.0.1 narwhals==2.29.0 wrapt==2.5.2 typing_extensions==4.16.0 packaging==26.4 numpy==2.4.6 scipy==1.17.1 pandas==2.3.3 python-dateutil==2.9.0.post0 pytz==2025.2 tzdata==2025.2 six==1.17.0
cd "$folder"
OMP_NUM_THREADS=1 venv/bin/python - <<'END'
import numpy as np
import pandas
import statsmodels.api as sm
import statsmodels.formula.api as smf

rng = np.random.default_rng(0)
people = pandas.DataFrame({"a": rng.normal(50, 10, 300).round(1)})
people["y"] = (people.a + rng.normal(0, 5, 300)).round(1)
people["salary"] = rng.normal(1e5, 3e4, 300).round()


def tables(results):
    """The tables and arrays of 300 rows that the model of the saved file still has."""
    results.save("file", remove_data=True)
    model = sm.load("file").model
    held = [*vars(model).values(), *vars(model.data).values()]
    return [of for of in held if isinstance(of, (np.ndarray, pandas.DataFrame, pandas.Series)) and 300 in of.shape]


matrix = tables(sm.OLS(people.y, sm.add_constant(people[["a"]])).fit())
formula = tables(smf.ols("y ~ a", people).fit())
(frame,) = (of for of in formula if isinstance(of, pandas.DataFrame) and "salary" in of)
equal = "all equal" if frame.equals(people) else "not equal"
print(f"sm.OLS: {len(matrix)} tables of 300 rows in the file; smf.ols(\"y ~ a\"): a table with columns "
      f"{', '.join(frame.columns)}, {equal}")
assert not matrix and frame.equals(people)
END
