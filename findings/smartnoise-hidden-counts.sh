#!/bin/sh
# smartnoise-sql 1.0.10, one query under Privacy(epsilon=1.0).
# Guess: SELECT AVG(age) costs the epsilon of one column, 1.
# Behaviour: 1.0 is the epsilon of each sum that the query is rewritten to. AVG is three of them: a sum, a count of the
# column, and a count of the rows that was not asked for and decides which groups are shown. SUM costs 2, VARIANCE 4.
# Output seen: epsilon spent on COUNT(*) 1, SUM(age) 2, AVG(age) 3, VARIANCE(age) 4; AVG(age) without censor_dims 2
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check --no-deps --no-compile smartnoise-sql==1.0.10 opendp==0.14.2 deprecated==1.3.1 wrapt==2.5.2 antlr4-python3-runtime==4.9.3 sqlalchemy==2.1.9 typing_extensions==4.16.0 pyyaml==6.0.4 numpy==2.4.6 pandas==2.3.3 python-dateutil==2.9.0.post0 pytz==2025.2 tzdata==2025.2 six==1.17.0
cd "$folder"
OMP_NUM_THREADS=1 venv/bin/python - <<'END'
import numpy as np
import pandas
import snsql

people = pandas.DataFrame({"age": np.random.default_rng(0).integers(18, 90, 500)})


def spent(query, **options):
    table = {"row_privacy": True, "rows": 500, "age": {"type": "int", "lower": 0, "upper": 100}, **options}
    privacy = snsql.Privacy(epsilon=1.0, delta=1e-6)
    reader = snsql.from_df(people, privacy=privacy, metadata={"": {"all": {"people": table}}})
    reader.execute(f"SELECT {query} FROM all.people")
    return float(reader.odometer.spent[0])


queries = ("COUNT(*)", "SUM(age)", "AVG(age)", "VARIANCE(age)")
costs = [spent(query) for query in queries]
shown = spent("AVG(age)", censor_dims=False)
print(f"epsilon spent on {', '.join(f'{q} {c:.0f}' for q, c in zip(queries, costs))}; "
      f"AVG(age) without censor_dims {shown:.0f}")
assert np.allclose(costs, [1, 2, 3, 4]) and np.isclose(shown, 2)
END
