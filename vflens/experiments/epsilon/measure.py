"""A lower bound of ε from canaries that went through a mechanism, beside the ε that is claimed.

A canary is one of two records, by a fair coin. Its score is what was released along the difference of both.
A quarter of the canaries, whose coins are known then, sets where the scores part and how many of the surest
are guessed. The others are guessed by that rule: no threshold is chosen on what it is judged by.
"""

import math
from typing import NamedTuple

import numpy as np

from vflens.errors import DataError
from vflens.experiments.outcome.decide import State
from vflens.numerics.gaussian_privacy import gaussian_epsilon
from vflens.numerics.measures.epsilon import least_epsilon, least_mu
from vflens.types import Array, Document
from vflens.words import counted

#: Fewer canaries leave too few to find the middle with.
LEAST_CANARIES = 100
_SHARES = [2.0**-k for k in range(7)]  # of the canaries that are guessed, the surest first


class Claimed(NamedTuple):
    """The ε that is claimed at ``delta``, None without one; ``gaussian``: it is that of Gaussian noise."""

    epsilon: float | None
    delta: float
    gaussian: bool = False

    def least(self, correct: int, guesses: int, coins: int, confidence: float) -> float:
        """The least ε that so many right guesses do not refute, rounded down to three digits."""
        if self.gaussian:
            found = gaussian_epsilon(least_mu(correct, guesses, confidence), self.delta)
        else:
            found = least_epsilon(correct, guesses, coins, self.delta, confidence)
        unit = 10.0 ** (math.floor(math.log10(found)) - 2) if found else 1.0
        return float(f"{math.floor(found / unit) * unit:.3g}")


class Canaries(NamedTuple):
    """n canaries: ``first`` and ``second`` (n, d) float64, ``chosen`` (n,) bool where the first went in."""

    first: Array
    second: Array
    chosen: Array

    @property
    def rows(self) -> Array:
        """What goes in, (n, d)."""
        return np.where(self.chosen[:, None], self.first, self.second)

    def scores(self, released: Array) -> Array:
        """What was released along each canary's difference, (n,).

        Raises:
            DataError: ``released`` is not (n, d), (n, T, d) or (d,) of finite numbers; or canaries hide each
                other, or have nothing to tell apart.
        """
        (n, d), shape = self.first.shape, released.shape
        one_by_one = len(shape) in (2, 3) and (shape[0], shape[-1]) == (n, d)
        if not (one_by_one or shape == (d,)):
            raise DataError(
                f"released has the shape {shape}: return ({n}, {d}) for {n} canaries one by one, "
                f"({n}, T, {d}) for T releases of each, ({d},) for one of all"
            )
        if odd := int((~np.isfinite(released)).sum()):
            raise DataError(f"released has {counted(odd, 'cell')} of no finite number: return finite ones")
        if shape == (d,) and d < n:
            raise DataError(
                f"released is one release of all in {counted(d, 'column')}, where canaries hide each other: "
                f"give at least {counted(n, 'column')}, one for each"
            )
        if alike := int((self.first == self.second).all(axis=1).sum()):
            raise DataError(
                f"first and second are equal in {counted(alike, 'canary', many='canaries')}: give two that "
                "differ"
            )
        summed = released.sum(axis=1) if len(shape) == 3 else released
        along: Array = (summed * (self.first - self.second)).sum(axis=1)
        return along


class EpsilonBound(NamedTuple):
    """``least``: ε is at least that, at ``confidence``; ``most``: the largest that the guesses can show."""

    claimed: Claimed
    confidence: float
    guesses: int
    correct: int
    least: float
    most: float

    @property
    def state(self) -> State:
        """Whether a breach of the claim is found."""
        claim = self.claimed.epsilon
        if claim is None:
            return State.UNTESTED
        if self.least > claim:
            return State.FOUND
        return State.NOT_FOUND if self.most > claim else State.UNDECIDED

    @property
    def sentence(self) -> str:
        """The only sentence about it."""
        claim = self.claimed.epsilon
        return (
            f"at least ε = {self.least:.3g} with {100 * self.confidence:g} % confidence; "
            f"{'no ε is claimed' if claim is None else f'claimed {claim:.4g}'}: "
        ) + {
            State.FOUND: "the claim is false",
            State.NOT_FOUND: "no breach of the claim is found",
            State.UNDECIDED: f"not decided, {self.guesses:,} guesses show at most ε = {self.most:.3g}",
            State.UNTESTED: "nothing to test",
        }[self.state]

    @property
    def json(self) -> Document:
        """For ``--json``."""
        claim = {**self.claimed._asdict(), "claimed": self.claimed.epsilon}
        del claim["epsilon"]
        return {**self._asdict(), **claim, "state": str(self.state), "sentence": self.sentence}


def measure(canaries: Canaries, released: Array, claimed: Claimed, confidence: float = 0.95) -> EpsilonBound:
    """The bound from what was ``released`` of ``canaries``.

    Raises:
        DataError: see :meth:`Canaries.scores`; or there are fewer than 100 canaries, or their coins fell
            alike.
    """
    scores, chosen = canaries.scores(released), canaries.chosen
    n, learn = len(chosen), len(chosen) // 4
    if n < LEAST_CANARIES or len(set(chosen[:learn].tolist())) < 2:
        raise DataError(
            f"{counted(n, 'canary', many='canaries')}, or coins that fell alike: give at least "
            f"{LEAST_CANARIES}, and toss a fair coin for each"
        )
    high, low = (float(np.median(scores[:learn][chosen[:learn] == side])) for side in (True, False))
    above = (scores - (high + low) / 2) * (-1 if high < low else 1)  # a release may turn the sign

    def counts(share: float, part: slice) -> tuple[int, int]:
        sure = np.argsort(-abs(above[part]), kind="stable")
        right = ((above[part] > 0) == chosen[part])[sure]
        guesses = max(1, round(share * len(right)))
        return int(right[:guesses].sum()), guesses

    def shown(share: float) -> float:
        return claimed.least(*counts(share, slice(learn)), learn, confidence)

    share = 1.0 if claimed.gaussian else max(_SHARES, key=shown)
    correct, guesses = counts(share, slice(learn, n))
    least, most = (claimed.least(right, guesses, n - learn, confidence) for right in (correct, guesses))
    return EpsilonBound(
        claimed=claimed, confidence=confidence, guesses=guesses, correct=correct, least=least, most=most
    )
