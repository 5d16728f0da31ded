"""Lower bounds of ε from guesses: which of two records went in, one fair coin each.

T. Steinke, M. Nasr and M. Jagielski, Privacy auditing with one (1) training run, 2023 (arXiv 2305.08846),
theorem 5.2: under (ε, δ)-differential privacy v of r guesses about m coins are right with a probability of at
most P(B ≥ v) + 2mδ max_i P(v > B ≥ v − i)/i, B binomial of r and e^ε/(1 + e^ε), whatever ties the coins'
answers together. r is chosen before the coins are known.

Under Gaussian differential privacy (Dong, Roth and Su 2022) no test of one coin has a larger advantage than
2Φ(μ/2) − 1: a guess is right with a probability of at most Φ(μ/2). This needs answers that do not depend on
each other.
"""

import math

import numpy as np
from scipy.special import bdtrc, betaincinv, ndtri
from scipy.stats import binom


def least_epsilon(correct: int, guesses: int, coins: int, delta: float, confidence: float) -> float:
    """The least ε ≥ 0 that ``correct`` of ``guesses`` about ``coins`` do not refute at ``delta``."""
    from scipy.optimize import brentq

    def beyond(epsilon: float) -> float:
        return chance(correct, guesses, coins, epsilon, delta) - (1 - confidence)

    if beyond(0.0) > 0:
        return 0.0
    high = 1.0
    while beyond(high) <= 0:
        high *= 2
    return float(brentq(beyond, 0.0, high, xtol=1e-9))


def chance(correct: int, guesses: int, coins: int, epsilon: float, delta: float) -> float:
    """The largest probability of so many right guesses under (ε, δ), by the theorem of the module."""
    right = 1 / (1 + math.exp(-epsilon))
    at_least = float(bdtrc(correct - 1, guesses, right))
    if not (delta and correct):
        return at_least
    below = np.cumsum(binom.pmf(np.arange(correct - 1, -1, -1), guesses, right))
    return at_least + 2 * coins * delta * float((below / np.arange(1, correct + 1)).max())


def least_mu(correct: int, guesses: int, confidence: float) -> float:
    """The least μ ≥ 0 that ``correct`` of ``guesses`` do not refute, by Clopper and Pearson."""
    share = betaincinv(correct, guesses - correct + 1, 1 - confidence) if correct else 0.0
    return max(0.0, float(2 * ndtri(share)))
