#!/bin/sh
# dp-accounting 0.6.0, RdpAccountant with REPLACE_ONE, ten Gaussian releases, noise 1, delta 1e-5, of samples without
# replacement from 1000 rows.
# Guess: epsilon grows with the sample, up to that of all rows: it is nowhere above.
# Behaviour: a sample of 700 rows costs more than all 1000, and one of 999 a third more; a row later it falls. The bound
# for samples is not capped by the one without sampling, so that a greater epsilon may be the better protected table.
# Output seen: 100 rows 4.59, 700 rows 20.43, 999 rows 25.05, all rows 19.05
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check --no-deps --no-compile dp-accounting==0.6.0 absl-py==2.5.1 attrs==23.2.0 dm-tree==0.1.10 mpmath==1.4.1 numpy==2.4.6 scipy==1.17.1 wrapt==2.5.2
cd "$folder"
OMP_NUM_THREADS=1 venv/bin/python - <<'END'
import dp_accounting
from dp_accounting import rdp

noise = dp_accounting.GaussianDpEvent(1.0)


def epsilon(event):
    accountant = rdp.RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE)
    return accountant.compose(event, 10).get_epsilon(1e-5)


few, most, nearly = (epsilon(dp_accounting.SampledWithoutReplacementDpEvent(1000, n, noise)) for n in (100, 700, 999))
full = epsilon(noise)
print(f"100 rows {few:.2f}, 700 rows {most:.2f}, 999 rows {nearly:.2f}, all rows {full:.2f}")
assert few < full < most < nearly and nearly > 1.3 * full
assert full == epsilon(dp_accounting.SampledWithoutReplacementDpEvent(1000, 1000, noise))
END
