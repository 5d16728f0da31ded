"""FedAdOb's figure of merit, its lemma and its two theorems on passports, with their errata.

**CAP** (definition 2, equation (13)): the mean of accuracy times recovery error over a grid of strengths. It
depends on the grid, so a :class:`Cap` carries it.

**Lemma 1** (equation (7)): of H = D W x with a secret scale D = diag(γ), γ = W s, who guesses γ' and inverts
W errs by ‖x − x̂‖ ≥ ‖(D⁻¹ − D'⁻¹)H‖/‖W‖. *Erratum*: this holds for an invertible W. For a tall one W⁺ loses
what lies outside the range of W; with P the projection onto it, ‖P(D⁻¹ − D'⁻¹)H‖/‖W‖ holds for every W of
full column rank.

**Theorem 1**: a linear layer H = W(x + s) has one secret key s, and W is known and of full column rank. A
guess s' of the key gives an input x̂ with ‖x − x̂‖ = ‖s − s'‖. The key has m numbers with independent means
from U(−N, 0), so the density of s is at most N⁻ᵐ. A guess independent of all that was observed is then within
ε of s with a probability of at most the volume of the ball over Nᵐ.

*Erratum*: m must not count numbers that share a mean. Let c channels have h numbers each. By Cauchy and
Schwarz ‖s − s'‖² ≥ h Σ_j (s̄_j − s̄'_j)², and the c averages s̄_j have a density of at most N⁻ᶜ. So m := c and
ε := ε/√h.

**Theorem 2**: the error of a linear attack W on n auxiliary rows (H_i, y_i), y_i = T_i H_i, is at least
min_W Σ_i ‖W H_i − y_i‖₂. Its unit is a sum of Euclidean distances over the auxiliary rows, neither a mean nor
a share of wrong labels: print it beside such a share, never compare them. *Erratum*: it is 0 as soon as the
H_i are independent, so for embeddings in general position whenever n ≤ dim H, as in the paper's own setting.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from vflens.array import Array
from vflens.numerics.measures.intervals import over_blind


@dataclass(frozen=True)
class DefenseStrength:
    """One strength of a defence: the accuracy under it and the error that an attack reaches.

    ``error`` is an MSE per feature, or a share of wrong labels in [0, 1]; ``blind`` is the least error of a
    blind guess on the same rows, in the same unit. ``attack`` names the attack.
    """

    strength: float
    accuracy: float
    error: float
    blind: float
    attack: str


@dataclass(frozen=True)
class Cap:
    """FedAdOb's CAP of one defence, with the grid that it depends on.

    Args:
        parameter: the setting of the defence that the grid varies, such as ``"largest_mean"``.
        settings: at least one, in any order; all errors in one unit.

    Raises:
        ValueError: there is no setting.
    """

    parameter: str
    settings: tuple[DefenseStrength, ...]

    def __post_init__(self) -> None:
        if not self.settings:
            raise ValueError("CAP is a mean over settings: give at least one")

    @property
    def grid(self) -> tuple[float, ...]:
        """The strengths, in the order of the settings."""
        return tuple(s.strength for s in self.settings)

    @property
    def value(self) -> float:
        """(1/m) Σ_s Acc(s)·Rerr(s), as printed."""
        return float(np.mean([s.accuracy * s.error for s in self.settings]))

    @property
    def or_blind(self) -> float:
        """The same with min(attack, blind): an adversary can guess blindly instead."""
        return float(np.mean([s.accuracy * min(s.error, s.blind) for s in self.settings]))

    @property
    def blind(self) -> float:
        """The same of the best blind guess."""
        return float(np.mean([s.accuracy * s.blind for s in self.settings]))

    @property
    def relative(self) -> float:
        """``value`` over ``blind``: 1 is no better than blind, above 1 worse than it."""
        return over_blind(self.value, self.blind)

    @property
    def accuracy(self) -> float:
        """The mean accuracy over the grid."""
        return float(np.mean([s.accuracy for s in self.settings]))

    def __str__(self) -> str:
        grid = ", ".join(f"{strength:g}" for strength in self.grid)
        return f"{self.value:.3f} over {self.parameter} = {grid}"


def against_best(caps: Iterable[Cap]) -> Cap:
    """CAP against the best attack: at each strength the setting of least error among ``caps``.

    Of equal errors the first counts. A NaN error, of an attack that failed, counts only where all are NaN.

    Raises:
        ValueError: there is none, or they differ in parameter or grid.
    """
    given = list(caps)
    if len({(cap.parameter, cap.grid) for cap in given}) != 1:
        raise ValueError("CAP against the best attack needs every attack at the same strengths, at least one")
    rows = zip(*(cap.settings for cap in given), strict=True)
    return Cap(given[0].parameter, tuple(min(row, key=_error) for row in rows))


def _error(setting: DefenseStrength) -> float:
    return math.inf if math.isnan(setting.error) else setting.error


def log_recovery_probability(epsilon: float, largest_mean: float, channels: int, entries: int = 1) -> float:
    """Theorem 1's ln P(‖x − x̂‖ ≤ ε) ≤ ln(π^{m/2} ε^m/(Γ(1 + m/2) N^m)), at most 0, for a random guess only.

    With m = ``channels`` and ε/√``entries`` for ε it holds (the erratum); the printed form has the key's
    whole size for ``channels`` and no ``entries``. x is the input of the passport's *layer*.

    Args:
        epsilon: ε > 0, a Euclidean distance in units of the layer's input.
        largest_mean: N > 0.
        channels: c ≥ 1, the means that the key has.
        entries: h ≥ 1, numbers of the key that share a mean.
    """
    m = channels
    radius = math.log(epsilon) - 0.5 * math.log(entries) - math.log(largest_mean)
    return min(0.0, m * (0.5 * math.log(math.pi) + radius) - math.lgamma(1 + m / 2))


def vacuous_error(largest_mean: float, channels: int) -> float:
    """The root mean squared error per number at which Theorem 1's bound reaches 1: about .242 N.

    N Γ(1 + m/2)^{1/m}/√(πm), which tends to N/√(2πe) from above; the numbers that share a mean cancel.
    """
    m = channels
    return largest_mean * math.exp(math.lgamma(1 + m / 2) / m) / math.sqrt(math.pi * m)


def label_error_bound(H: Array, y: Array, *, steps: int = 2000, accuracy: float = 1e-6) -> float:
    """Theorem 2's min_W Σ_i ‖W H_i − y_i‖₂ from below, by iteratively reweighted least squares.

    Weighted residuals z_i of least squares satisfy Σ_i z_i H_iᵀ = 0. Scaled to norms of at most 1 they are
    feasible in the dual, max −Σ⟨z_i, y_i⟩, whose value is returned: a lower bound however early the steps
    end.

    Args:
        H: embeddings of the n auxiliary rows (n, d).
        y: what the main model says of them, T_i H_i (n, k).
        steps: most steps.
        accuracy: relative gap to the best W found at which it ends.
    """
    weights, best, bound = np.ones((len(H), 1)), math.inf, 0.0
    negligible = accuracy * float(np.linalg.norm(y, axis=1).sum())
    for _ in range(steps):
        root = np.sqrt(weights)
        W = np.linalg.lstsq(root * H, root * y, rcond=None)[0]
        residuals = H @ W - y
        lengths = np.linalg.norm(residuals, axis=1, keepdims=True)
        best = min(best, float(lengths.sum()))
        if best <= negligible:
            return 0.0
        scale = max(1.0, float((weights * lengths).max()))
        bound = max(bound, float((weights * lengths**2).sum()) / scale)
        if best - bound <= accuracy * best:
            break
        weights = 1 / np.maximum(lengths, 1e-9 * best)
    return bound
