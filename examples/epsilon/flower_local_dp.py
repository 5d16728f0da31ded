"""Canaries through Flower's LocalDpMod, each the update of a client, for `vflens epsilon`.

In an environment of its own, with flwr 1.42.0: python flower_local_dp.py flower.npz
The mod clips to norm 1 and adds the noise of ε = 2 at δ = 1e-5 for sensitivity 1.
"""

import logging
import os
import sys
from types import SimpleNamespace

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")

import numpy as np
from flwr.app import ArrayRecord, RecordDict
from flwr.clientapp.mod import LocalDpMod

CANARIES, COLUMNS, LENGTH = 1000, 4, 10.0

logging.getLogger("flwr").setLevel(logging.WARNING)  # it logs a line for each update
np.random.seed(0)  # noqa: NPY002, the mod draws its noise from NumPy's global state
chosen = np.random.default_rng(0).integers(0, 2, CANARIES) == 1
first = np.zeros((CANARIES, COLUMNS), np.float32)
first[np.arange(CANARIES), np.arange(CANARIES) % COLUMNS] = LENGTH
mod = LocalDpMod(clipping_norm=1.0, sensitivity=1.0, epsilon=2.0, delta=1e-5)


def message(numbers):
    """What the mod reads of a message: a real one can be made in a run only."""
    records = RecordDict({"arrays": ArrayRecord([numbers])})
    return SimpleNamespace(content=records, has_error=lambda: False)


def released(update):
    """What a client with ``update`` sends, who got a model of zeros."""
    sent = mod(message(np.zeros_like(update)), None, lambda *_: message(update.copy()))
    return sent.content["arrays"].to_numpy_ndarrays()[0]


out = np.array([released(row) for row in np.where(chosen[:, None], first, -first)])
np.savez(sys.argv[1], first=first, second=-first, chosen=chosen, released=out)
