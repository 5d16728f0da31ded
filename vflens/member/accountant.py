"""The privacy cost of a party's noise, added up over a run.

What is counted is a row of a vertical run, or the update of a client (docs/adr/0030-epsilon-of-a-client.md).
A training row is released once an epoch and a prediction row once in all, so the number of epochs counts the
releases of a row, for all requests; after a restart the epoch on disk gives the count. An update is released
once a round.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from vflens.errors import StateError
from vflens.numerics.discrete_noise import ideal, largest_epsilon
from vflens.numerics.gaussian_privacy import gaussian_epsilon
from vflens.types import Claim


@dataclass(frozen=True)
class Accountant:
    """Cost of one release of a row; None where no defence states one.

    ``epsilon`` of pure differential privacy adds up. ``mu`` of Gaussian differential privacy grows with the
    root of the releases and gives the exact ε (:mod:`vflens.numerics.gaussian_privacy`). Each of several
    defences at one hook bounds the release: the least of each kind counts.

    μ is that of the ideal Gaussian. The sampler has a largest value and thus no μ of its own, but differs
    from the ideal by a known error in each of the ``width`` numbers of a release. (1 + e^ε) times the error
    of all releases is taken from δ; if it is more than 1 % of δ, no ε is stated.
    """

    epsilon: float | None
    mu: float | None
    delta: float
    width: int

    @classmethod
    def of(cls, claims: Sequence[Claim], delta: float, width: int) -> Self:
        """That of the ``claims`` of all defences at one hook; ``delta`` is the δ that a total ε is stated at,
        ``width`` the numbers of a row.
        """
        pure = [c.epsilon for c in claims if c.epsilon is not None and c.delta == 0]
        mus = [c.mu for c in claims if c.mu is not None]
        return cls(min(pure, default=None), min(mus, default=None), delta, width)

    @property
    def counts(self) -> bool:
        """Whether a defence states a cost."""
        return self.epsilon is not None or self.mu is not None

    def total(self, releases: int) -> float | None:
        """ε of a row after so many releases, None without a stated cost or with noise too small for the
        sampler.
        """
        found = []
        if self.epsilon is not None:
            found.append(releases * self.epsilon)
        if self.mu is not None:
            gaussian = gaussian_epsilon(math.sqrt(releases) * self.mu, ideal(self.delta))
            if gaussian <= largest_epsilon(self.delta, releases * self.width):
                found.append(gaussian)
        return min(found, default=None)

    def check(self, releases: int, budget: float, what: str, fewer: str = "train for fewer epochs") -> None:
        """Refuse the release of ``what`` that would be its ``releases``-th, if it is beyond ``budget`` or has
        no ε; ``fewer`` is the remedy that makes fewer of them.

        Raises:
            StateError: naming both.
        """
        if not self.counts:
            return
        total = self.total(releases)
        if total == math.inf:
            raise StateError(
                f"release {releases} of {what} has no ε, as a batch norm mixes the rows of a batch, and "
                f"limits.epsilon is {budget:g}: use a network without batch norm, or leave limits.epsilon out"
            )
        if total is None:
            raise StateError(
                f"release {releases} of {what} has no ε at δ = {self.delta:g}, its noise is too small for "
                f"the sampler, and limits.epsilon is {budget:g}: add noise, {fewer}, or leave limits.epsilon "
                "out"
            )
        if total > budget:
            raise StateError(
                f"release {releases} of {what} makes ε = {total:.4g} at δ = {self.delta:g}, limits.epsilon "
                f"is {budget:g}: {fewer}, add noise, or raise it"
            )
