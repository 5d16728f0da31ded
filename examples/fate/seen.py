"""What FATE's guest has after prediction, as arrays for ``vflens attack --arrays``.

    python examples/fate/seen.py recorded seen.npz

reads ``guest_model.json`` and ``host_model.json``, as FATE's component saves them, the guest's columns, and
what its recorder wrote. The guest has X·w of the host from every prediction. FATE does not give it w: it has
it where one owner deploys both models, or where the host's is sold.
"""

import json
import sys
from pathlib import Path

import numpy as np

from vflens.storage.journal import Reader


def weights(file):
    """Coefficients (1, d) and intercept (1,) of a model of FATE."""
    param = json.loads(file.read_text())["data"]["estimator"]["param"]
    return np.reshape(param["coef_"], (1, -1)), np.reshape(param["intercept_"] or 0.0, 1)


def main(recorded, out):
    """Write what the attack needs to ``out``."""
    (w, bias), (host, _) = (weights(recorded / f"{party}_model.json") for party in ("guest", "host"))
    (message,) = Reader(recorded / "guest" / "transcript")
    own = np.load(recorded / "guest_columns.npz")["own"][message.rows]
    logits = message.tensor("embedding")[:, 0] + own @ w[0] + bias
    np.savez(out, W=host, W_own=w, bias=bias, own=own, scores=1 / (1 + np.exp(-logits)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
