#!/bin/sh
# pyCANON 1.3.6, delta_disclosure.
# Guess: a group that lacks one of the sensitive values has an infinite delta, for the log of 0 shares: all in it are
# known not to have that value.
# Behaviour: values that a group lacks are passed over. The delta is finite, here that of the other group.
# Output seen: shares of y: 1/4 in the table, 0 in the second group; delta .693
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check --no-deps pycanon==1.3.6 numpy==2.4.6 pandas==2.3.3 python-dateutil==2.9.0.post0 pytz==2025.2 tzdata==2025.2 six==1.17.0
cd "$folder"
OMP_NUM_THREADS=1 venv/bin/python - <<'END'
import math

import pandas
from pycanon import anonymity

people = pandas.DataFrame({"group": list("aaaabbbb"), "ill": list("xxyyxxxx")})
delta = anonymity.delta_disclosure(people, ["group"], ["ill"])
print(f"shares of y: 1/4 in the table, 0 in the second group; delta {delta:.3f}")
assert (people.ill[people.group == "b"] == "y").sum() == 0 and math.isclose(delta, math.log(2))
END
