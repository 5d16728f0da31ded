#!/usr/bin/env bash
# ε of T Gaussian releases by dp-accounting's privacy loss distributions, in an environment of its own: it pins
# attrs < 24. The numbers stand in tests/unit/member/test_accountant.py.
set -euo pipefail
python=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/env"
"$folder/env/bin/pip" install -q dp-accounting==0.6.0
"$folder/env/bin/python" - <<'PYTHON'
import dp_accounting
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant

for level, releases in ((20.0, 1), (20.0, 30), (50.0, 30), (50.0, 100), (100.0, 100), (10.0, 100)):
    event = dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(level / 2), releases)
    print(f"({level}, {releases}): {PLDAccountant().compose(event).get_epsilon(0.99e-5):.7g},")
PYTHON
