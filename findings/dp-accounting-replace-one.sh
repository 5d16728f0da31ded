#!/bin/sh
# dp-accounting 0.6.0, ten Gaussian releases, each record's norm at most 1, noise 1, when a person's record is replaced.
# Guess: RDP loosens what PLD says, so that for one event and one delta its epsilon is never the smaller one.
# Behaviour: with REPLACE_ONE it is less than half. Two records apart, the sum moves by 2: PLD counts that, RDP counts
# the 1 of ADD_OR_REMOVE_ONE and says the same epsilon for both. Whoever takes RDP as the safe bound promises too much.
# Output seen: add or remove: RDP 19.05, PLD 17.86; replace: RDP 19.05, PLD 46.21
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check --no-deps dp-accounting==0.6.0 absl-py==2.5.1 attrs==23.2.0 dm-tree==0.1.10 mpmath==1.4.1 numpy==2.4.6 scipy==1.17.1 wrapt==2.5.2
cd "$folder"
OMP_NUM_THREADS=1 venv/bin/python - <<'END'
import dp_accounting
from dp_accounting import pld, rdp

event = dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(1.0), 10)


def epsilon(accountant, relation):
    return accountant(neighboring_relation=relation).compose(event).get_epsilon(1e-5)


Relation = dp_accounting.NeighboringRelation
pairs = [
    (epsilon(rdp.RdpAccountant, relation), epsilon(pld.PLDAccountant, relation))
    for relation in (Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE)
]
add, replace = pairs
print(f"add or remove: RDP {add[0]:.2f}, PLD {add[1]:.2f}; replace: RDP {replace[0]:.2f}, PLD {replace[1]:.2f}")
assert add[0] > add[1] and replace[0] == add[0] and 2 * replace[0] < replace[1]
END
