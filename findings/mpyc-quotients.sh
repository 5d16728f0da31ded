#!/bin/sh
# MPyC 0.11, secure fixed point numbers with 16 bits after the point.
# Guess: one pair of inputs has one quotient, rounded to the nearest 2^-16, and 6 / 3 is 2.
# Behaviour: rounding is drawn anew with each call, and a quotient is out by several steps. 6 / 3 comes out above 2 or
# below 2, so that a threshold after a division, such as "at least 2 people a group", holds or fails by chance.
# Output seen (drawn anew each time): 60 quotients 6 / 3: off by -2 to 4 steps of 2^-16; at least 2: [0, 1]
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check --no-deps mpyc==0.11
cd "$folder"
OMP_NUM_THREADS=1 venv/bin/python - <<'END'
import sys

sys.argv = ["run", "--no-log"]
from mpyc.runtime import mpc

number = mpc.SecFxp(32)
quotients = [mpc.run(mpc.output(number(6.0) / number(3.0))) for _ in range(60)]
steps = {round((quotient - 2) * 2**16) for quotient in quotients}
reached = {mpc.run(mpc.output(number(6.0) / number(3.0) >= 2)) for _ in range(60)}
print(f"60 quotients 6 / 3: off by {min(steps)} to {max(steps)} steps of 2^-16; at least 2: {sorted(map(int, reached))}")
assert min(steps) < 0 < max(steps) and max(map(abs, steps)) <= 8 and len(reached) == 2
END
