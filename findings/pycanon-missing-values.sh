#!/bin/sh
# pyCANON 1.3.6, k_anonymity and l_diversity of a table with a missing quasi-identifier.
# Guess: missing is a value of its own, and whoever alone has none makes k = 1.
# Behaviour: rows without the value belong to no group and lower nothing. A table where one person stands out by a gap
# passes for 3-anonymous; written as a word, the same gap is k = 1.
# Output seen: 3 people of 30, 3 of 40, 1 without an age: k 3, l 2; with "none" for the gap: k 1, l 1
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check --no-deps --no-compile pycanon==1.3.6 numpy==2.4.6 pandas==2.3.3 python-dateutil==2.9.0.post0 pytz==2025.2 tzdata==2025.2 six==1.17.0
cd "$folder"
OMP_NUM_THREADS=1 venv/bin/python - <<'END'
import pandas
from pycanon import anonymity

people = pandas.DataFrame({"age": ["30"] * 3 + ["40"] * 3 + [None], "ill": list("xyxyxyx")})


def levels(table):
    return anonymity.k_anonymity(table, ["age"]), anonymity.l_diversity(table, ["age"], ["ill"])


gap, word = levels(people), levels(people.fillna("none"))
print(f"3 people of 30, 3 of 40, 1 without an age: k {gap[0]}, l {gap[1]}; with \"none\" for the gap: k {word[0]}, "
      f"l {word[1]}")
numbers = people.assign(age=people.age.astype(float))
assert gap == levels(numbers) == (3, 2) and word == (1, 1)
END
