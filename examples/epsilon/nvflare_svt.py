"""Canaries through NVFlare's SVTPrivacy, each the update of a site, for `vflens epsilon`.

In an environment of its own, with nvflare 2.9.0: python nvflare_svt.py nvflare.npz
An update has four weights; canaries differ in the last one. The script prints the ε that the filter's
accountant states of one update.
"""

import logging
import sys

import numpy as np
from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.app_common.filters.svt_privacy import SVTPrivacy

CANARIES, COLUMNS, LENGTH = 1000, 4, 10.0

logging.disable(logging.INFO)  # it logs a line for each update
np.random.seed(0)  # noqa: NPY002, the filter draws from NumPy's global state
chosen = np.random.default_rng(0).integers(0, 2, CANARIES) == 1
first = np.zeros((CANARIES, COLUMNS), np.float32)
first[:, -1] = LENGTH
svt = SVTPrivacy(fraction=0.5, epsilon=0.5, noise_var=0.25, gamma=1.0, tau=0.1, replace=False)


def released(update):
    """What a site sends in place of ``update``."""
    model = {"weight": update.copy()}
    sent = svt.process_dxo(DXO(DataKind.WEIGHT_DIFF, data=model), Shareable(), FLContext()).data
    return sent["weight"]


out = np.array([released(row) for row in np.where(chosen[:, None], first, -first)])
np.savez(sys.argv[1], first=first, second=-first, chosen=chosen, released=out)
print("claimed ε of an update:", svt.get_privacy_spent() / CANARIES)
