"""The steps by protected training: two parties and their dealer in processes, over Unix sockets and over TLS.

θ is that of the integer twin on the same numbers, whatever is drawn to hide them.
"""

from __future__ import annotations

import numpy as np

from benchmarks.elsewhere.problem import COLUMNS, FIRST, RATE, ROWS, STEPS, Array, Taken, data, row
from benchmarks.protected import of_a_step
from vflens.numerics.fixed_point import decoded, encoded
from vflens.numerics.shares.response import SIGMOID
from vflens.numerics.shares.scale import FEATURE_BITS, PARAMETER_BITS, fitting
from vflens.numerics.shares.step import mask_sizes, twin


def trained(steps: int) -> Array:
    """θ (d,) of the integer twin after so many steps."""
    rng, scale = np.random.default_rng(0), fitting(SIGMOID, RATE, 0.0, ROWS, columns=COLUMNS + 1, steps=steps)
    features, labels = data()
    rows = encoded(features, FEATURE_BITS, 1), encoded(labels[:, None], SIGMOID.bits, 1)
    theta = np.zeros((COLUMNS, 1), np.uint64)
    for _ in range(steps):
        opened = (rng.integers(0, 2**64, (size, 1), np.uint64) for size in (ROWS, COLUMNS))
        theta = twin(theta, rows, (next(opened), next(opened)), scale)
    return decoded(theta, PARAMETER_BITS)[:, 0]


def main() -> None:
    """Print a row for each kind of link."""
    dealt, theta = 8 * mask_sizes(ROWS, COLUMNS + 1, 1, SIGMOID)[1], trained(FIRST + STEPS)
    for link in ("Unix sockets", "mutual TLS"):
        cost = of_a_step(COLUMNS, "shares", link)
        whole = Taken(cost.clock * STEPS, cost.core * STEPS, (cost.sent + dealt) * STEPS, theta)
        row(f"VFLens, 2 parties and a dealer, {link}", whole)


if __name__ == "__main__":
    main()
