"""Whether something is found, not found, or not decided: by the bound of an interval, never by a figure.

A threshold is broken by what is found beyond it, and held where nothing is. Several attacks are tried against
one threshold. It is broken if the lower bound of one lies beyond it: each
bound is at 1 − .025/tries, so that noise breaks a kept threshold with at most 2.5 %. It is held if the upper
bounds of all lie within it: the bound of the worst one alone is wrong with at most 2.5 %, so that noise
passes a broken threshold as rarely.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import partial

from vflens.numerics.measures.advantage import advantage, exact, normal_quantile
from vflens.score.service import MIN_ROWS

_MOST_ROWS = 10**9  # no number of rows is named beyond this
HARDLY = 0.05  # of what a blind guess leaves open: an attack that takes less is called hardly better


class State(StrEnum):
    """What is known of a finding; nothing else is said of one."""

    FOUND = "found"
    UNDECIDED = "not decided"
    NOT_FOUND = "not found"
    UNTESTED = "not tested"


def worst(states: Iterable[State]) -> State:
    """Found before not decided before not found; not found of nothing."""
    return min(states, key=list(State).index, default=State.NOT_FOUND)


def needed(at: Callable[[int], State], rows: int) -> int:
    """How many rows would decide by ``at``: ``rows``, twice as many, …; 0 where too many would."""
    while rows < _MOST_ROWS and at(rows) is State.UNDECIDED:
        rows *= 2
    return rows if rows < _MOST_ROWS else 0


def above(share: float, n: int, most: float, tries: int = 1) -> State:
    """Whether more than ``most`` is found, from a ``share`` of ``n`` rows."""
    if exact(share, n, tries)[0] > most:
        return State.FOUND
    return State.NOT_FOUND if exact(share, n)[1] <= most else State.UNDECIDED


def above_guess(share: float, guess: float, n: int, tries: int = 1) -> State:
    """Whether ``share`` of ``n`` rows is beyond that of a ``guess``, by the interval of the advantage.

    Held: it takes hardly more (at most 5 % of what the guess leaves open); a guess that is always right
    leaves nothing.
    """
    if guess >= 1:
        return State.NOT_FOUND
    if advantage(share, guess, n, partial(exact, tries=tries)).low > 0:
        return State.FOUND
    return State.NOT_FOUND if advantage(share, guess, n, exact).high <= HARDLY else State.UNDECIDED


def beyond_null(share: float, guess: float, deviation: float, tries: int = 1) -> State:
    """Whether ``share`` is beyond a permutation null, by its mean ``guess`` and standard ``deviation``.

    Held: it takes hardly more, as :func:`above_guess`.
    """
    if share > guess + normal_quantile(tries) * deviation:
        return State.FOUND
    most = share + normal_quantile() * deviation
    return State.NOT_FOUND if most - guess <= HARDLY * (1 - guess) else State.UNDECIDED


def better(error: float, half_width: float | None, blind: float, n: int, tries: int = 1) -> State:
    """Whether an ``error`` over ``n`` rows, ± ``half_width`` at 95 %, is less than the ``blind`` guess's.

    Held: it is hardly less, by at most 5 %. Fewer than 50 rows decide nothing; a blind guess that is exact
    leaves nothing to find.
    """
    if blind == 0:
        return State.NOT_FOUND
    if n < MIN_ROWS or half_width is None:
        return State.UNDECIDED
    if error + half_width * normal_quantile(tries) / normal_quantile() < blind:
        return State.FOUND
    return State.NOT_FOUND if error - half_width >= (1 - HARDLY) * blind else State.UNDECIDED
