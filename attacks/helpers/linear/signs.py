"""Numbers of which only the distance from a centre is known: which side each is on."""

import numpy as np

from vflens.types import Array

_SLACK = 0.05  # of a number beyond [0, 1]: sizes are estimates
_SETTLING = 4  # the first of so many parts of the sweeps is not counted


def sided(
    sizes: Array, centre: float, belief: tuple[Array, Array], sweeps: int, rng: np.random.Generator
) -> Array:
    """E[x | |x − c| = ``sizes``] (n, d) for x ~ N(μ, Σ), ``belief`` (μ, Σ⁻¹), c = ``centre``.

    Gibbs sampling: number by number the probability of its side, given all others of its row; what is
    averaged are these probabilities. A side on which a number leaves [0, 1] loses (excess/.05)²/2.
    """
    (mean, precision), total = belief, np.zeros_like(sizes)
    favour = _excess(centre - sizes) - _excess(centre + sizes)  # of the upper side
    side = np.where(favour + (mean - centre) >= 0, 1.0, -1.0)
    away = centre + side * sizes - mean
    settling = sweeps // _SETTLING
    for sweep in range(sweeps):
        for j in range(sizes.shape[1]):
            others = away @ precision[:, j] - precision[j, j] * away[:, j]
            slope = precision[j, j] * (centre - mean[j]) + others
            upper = 1 / (1 + np.exp(np.clip(2 * sizes[:, j] * slope - favour[:, j], -50, 50)))
            side[:, j] = np.where(rng.random(len(sizes)) < upper, 1.0, -1.0)
            away[:, j] = centre + side[:, j] * sizes[:, j] - mean[j]
            if sweep >= settling:
                total[:, j] += 2 * upper - 1
    found: Array = centre + sizes * total / (sweeps - settling)
    return found.clip(0, 1)


def _excess(x: Array) -> Array:
    """What ``x`` costs outside [0, 1]."""
    cost: Array = (x - x.clip(0, 1)) ** 2 / (2 * _SLACK**2)
    return cost
