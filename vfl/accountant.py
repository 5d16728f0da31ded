"""What a party's noise leaves of the privacy of a row, added up over a run.

A training row is released once an epoch and a prediction row once in all, so the releases of a row are counted by the
epochs, whatever is asked, and a restart that finds the epoch on the disk finds the count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from vfl.errors import StateError
from vfl.types import Claim


@dataclass(frozen=True)
class Accountant:
    """Cost of one release of a row; None where no defence states one.

    ``epsilon`` of pure differential privacy adds up. ``rho`` of zero-concentrated differential privacy adds up too and
    gives ε = ρ + 2√(ρ ln(1/δ)) (Bun and Steinke, 2016, lemma 1.7 and proposition 1.3). Of several defences at one hook
    each bounds what leaves, the others before and after it included: the least of each kind counts.
    """

    epsilon: float | None
    rho: float | None
    delta: float

    @classmethod
    def of(cls, claims: Sequence[Claim], delta: float) -> Accountant:
        """That of the ``claims`` of all defences at one hook; ``delta`` is the δ that a total ε is stated at."""
        pure = [c.epsilon for c in claims if c.epsilon is not None and c.delta == 0]
        rhos = [c.rho for c in claims if c.rho is not None]
        return cls(min(pure, default=None), min(rhos, default=None), delta)

    def total(self, releases: int) -> float | None:
        """ε of a row after so many releases, None where no defence states a cost."""
        found = []
        if self.epsilon is not None:
            found.append(releases * self.epsilon)
        if self.rho is not None:
            rho = releases * self.rho
            found.append(rho + 2 * math.sqrt(rho * math.log(1 / self.delta)))
        return min(found, default=None)

    def check(self, releases: int, budget: float, what: str) -> None:
        """Refuse the release of ``what`` that would be the row's ``releases``-th, if it is beyond ``budget``.

        Raises:
            StateError: naming both.
        """
        total = self.total(releases)
        if total is not None and total > budget:
            raise StateError(
                f"release {releases} of {what} makes ε = {total:.4g} at δ = {self.delta:g}, limits.epsilon is {budget:g}: train for fewer epochs, add noise, or raise it"
            )
