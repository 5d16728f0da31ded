"""Forty tables whose leak is known by construction: twenty of which nothing leaks, twenty that leak.

A table states what leaks by exposure: a prediction of a model that is drawn ("audit"), the messages of
training in the clear ("training"), and all that its own run gives away ("run"). A table of the first twenty
gives away nothing in its run; in an audit some of them do, whose weights are zero by their own labels alone.
:mod:`truth.oracle` derives the same without the product, and :mod:`truth.lab` compares both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from truth.oracle import Array

Draw: TypeAlias = Callable[[np.random.Generator, int], Array]
Claim: TypeAlias = Literal["all", "column", "some", "none", "open"]
Exposure: TypeAlias = Literal["audit", "training", "run"]
#: Why training in the clear has no truth of many columns: the oracle then gives an interval.
UNKNOWN = (
    "each epoch sends one equation a row, with weights of its own, of which only the last are disclosed: an "
    "affine map from known rows takes the least; whoever knew all weights would solve as many columns as "
    "there are epochs; what can be taken between the two nobody knows"
)


class Claims(NamedTuple):
    """What leaks by exposure: all columns, the one ``column``, some column of one in twenty models, none;
    "open" where no construction says it: of training :data:`UNKNOWN` says why.
    """

    audit: Claim = "all"
    training: Claim = "all"
    run: Claim = "all"


@dataclass(frozen=True)
class Built:
    """A table that ``draw`` (rng, n) gives in the columns' own units, (n, d), within ``bounds``.

    ``claims`` hold for ``reason``. ``labels`` of the run: "column" follow it, "balanced" give every training
    row twice, once with each label, "rare" are nearly all one class and follow nothing. ``words`` are texts
    by column and value. ``protected``: the run trains on shares. ``defense`` acts at the coordinator.
    """

    name: str
    claims: Claims
    reason: str
    draw: Draw
    bounds: tuple[tuple[float, float], ...]
    column: int = 0
    classes: int = 2
    rows: int = 1200
    labels: Literal["column", "balanced", "rare"] = "column"
    words: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    protected: bool = True
    defense: str = ""

    @property
    def leaks(self) -> bool:
        """Whether its run gives a column away."""
        return self.claims.run != "none"

    def claimed(self, exposure: Exposure) -> list[bool | None]:
        """Whether each column leaks; None where nothing is claimed of one."""
        claim = getattr(self.claims, exposure)
        rest = {"all": True, "none": False}.get(claim)
        return [claim == "column" or rest if j == self.column else rest for j in range(len(self.bounds))]

    @property
    def names(self) -> list[str]:
        """The names of its columns."""
        return [f"c{j}" for j in range(len(self.bounds))]

    def scaled(self, x: Array) -> Array:
        """``x`` (n, d) by the bounds, [0, 1]."""
        low, high = np.array(self.bounds).T
        found: Array = (x - low) / (high - low)
        return found


def _uniform(rng: np.random.Generator, n: int) -> Array:
    return rng.random(n)


def _normal(rng: np.random.Generator, n: int) -> Array:
    return np.clip(0.5 + 0.12 * rng.standard_normal(n), 0, 1)


def _skewed(rng: np.random.Generator, n: int) -> Array:
    """Log-normal, median 1, cut at 60."""
    return np.minimum(np.exp(rng.standard_normal(n)), 60.0)


def _exponential(rng: np.random.Generator, n: int) -> Array:
    """Mean 1, cut at 15."""
    return np.minimum(rng.exponential(size=n), 15.0)


def _flag(share: float, values: tuple[float, float] = (0.0, 1.0)) -> Draw:
    """Two values, the second in exactly this ``share`` of rows."""

    def draw(rng: np.random.Generator, n: int) -> Array:
        found = np.full(n, values[0])
        found[rng.permutation(n)[: round(share * n)]] = values[1]
        return found

    return draw


def _whole(most: int) -> Draw:
    return lambda rng, n: rng.integers(0, most + 1, n).astype(float)


def _constant(value: float) -> Draw:
    return lambda rng, n: np.full(n, value)


def _days(rng: np.random.Generator, n: int) -> Array:
    return rng.integers(0, 20_000, n).astype(float)


def _few_differ(rng: np.random.Generator, n: int) -> Array:
    """Zero but for 1 % of rows, which hold different amounts."""
    found = np.zeros(n)
    rows = rng.permutation(n)[: n // 100]
    found[rows] = 0.5 + 0.5 * rng.random(len(rows))
    return found


def _coarse(draw: Draw) -> Draw:
    """Whole 4096ths: their sums are exact, scaled by a power of two as well."""
    return lambda rng, n: np.floor(draw(rng, n) * 4096) / 4096


def _beside(*columns: Draw) -> Draw:
    return lambda rng, n: np.column_stack([draw(rng, n) for draw in columns])


def _twice(rng: np.random.Generator, n: int) -> Array:
    u = rng.random(n)
    return np.column_stack([u, 1 - 2 * u])


def _sum(rng: np.random.Generator, n: int) -> Array:
    a, b = rng.random(n), rng.random(n)
    return np.column_stack([a, b, a + b])


def _flag_of_amount(rng: np.random.Generator, n: int) -> Array:
    u = rng.random(n)
    return np.column_stack([u, (u > 0.9).astype(float)])


_UNIT = (0.0, 1.0)
_MANY = "one equation for so many independent columns: of none a twentieth"
_ZERO = "every training row stands there with both labels, so that no weight leaves zero, to the bit"
_SAME = "the release is one class for everybody"
_FIXED = "there is nothing to find"
_OF_MANY = Claims(audit="none", training="open", run="none")
_NONE = Claims("none", "none", "none")


def _many(name: str, column: Draw, bound: tuple[float, float], d: int) -> Built:
    return Built(name, _OF_MANY, _MANY, _beside(*[column] * d), (bound,) * d, labels="rare")


def _zero(name: str, column: Draw, most: float = 1.0) -> Built:
    draw, bounds = _coarse(_beside(column, _uniform)), ((0.0, most), _UNIT)
    return Built(name, Claims(run="none"), _ZERO, draw, bounds, labels="balanced", protected=False)


def _same(name: str, column: Draw, bound: tuple[float, float]) -> Built:
    claims = Claims(run="none")
    return Built(name, claims, _SAME, _beside(column), (bound,), labels="rare", defense="label_only")


NOTHING = (
    _many("100 uniform", _uniform, _UNIT, 100),
    _many("120 normal", _normal, _UNIT, 120),
    _many("120 skewed", _exponential, (0.0, 15.0), 120),
    _many("120 whole numbers", _whole(1000), (0.0, 1000.0), 120),
    _many("200 two-valued", _flag(0.2), _UNIT, 200),  # of halves one equation tells some which is likelier
    _many("100 dates", _days, (0.0, 20_000.0), 100),
    Built(
        "one flag of 5 % among 120",
        _OF_MANY,
        _MANY,
        _beside(_flag(0.05), *[_uniform] * 119),
        (_UNIT,) * 120,
        labels="rare",
    ),
    _zero("weights of zero, uniform", _uniform),
    _zero("weights of zero, normal", _normal),
    _zero("weights of zero, rare flag", _flag(0.02)),
    _zero("weights of zero, two-valued", _flag(0.5)),
    _zero("weights of zero, skewed", _skewed, 64.0),
    _zero("weights of zero, whole numbers", _whole(4), 4.0),
    _zero("weights of zero, dates", _days, 32_768.0),
    Built("one constant", _NONE, _FIXED, _beside(_constant(0.4)), (_UNIT,)),
    Built(
        "three constants",
        _NONE,
        _FIXED,
        _beside(_constant(0.0), _constant(0.5), _constant(1.0)),
        (_UNIT,) * 3,
        protected=False,
    ),
    _same("one class released, uniform", _uniform, _UNIT),
    _same("one class released, skewed", _skewed, (0.0, 60.0)),
    _same("one class released, two-valued", _flag(0.5), _UNIT),
    _same("one class released, whole numbers", _whole(9), (0.0, 9.0)),
)


def _alone(name: str, column: Draw, bound: tuple[float, float] = _UNIT, **more: object) -> Built:
    reason = "one equation for one column"
    return Built(name, Claims(), reason, _beside(column), (bound,), **more)  # type: ignore[arg-type]


def _among(name: str, column: Draw, bound: tuple[float, float] = _UNIT, **more: object) -> Built:
    reason = "the label follows the column, so that its weight is the largest"
    draw, bounds = _beside(column, _uniform, _uniform), (bound, _UNIT, _UNIT)
    return Built(name, Claims(run="column"), reason, draw, bounds, **more)  # type: ignore[arg-type]


LEAKING = (
    _alone("flag of 0.2 %", _flag(0.002), rows=8000),
    _alone("flag of 0.5 %", _flag(0.005), rows=5000),
    _among("flag of 1 %", _flag(0.01), rows=3000),
    _among("flag of 2 %", _flag(0.02), rows=3000),
    _among("flag of 5 % in the clear", _flag(0.05), protected=False),
    _alone("two values", _flag(0.5)),
    _among("two values, 7 and 9", _flag(0.3, (7.0, 9.0)), (7.0, 9.0)),
    _alone("J and N", _flag(0.4), words={0: ("N", "J")}),
    _alone("skewed", _skewed, (0.0, 60.0)),
    _among("skewed among others", _skewed, (0.0, 60.0)),
    _alone("skewed in the clear", _skewed, (0.0, 60.0), protected=False),
    _alone("whole numbers to 5", _whole(5), (0.0, 5.0)),
    _among("whole numbers to 200", _whole(200), (0.0, 200.0)),
    _alone("dates", _days, (0.0, 20_000.0)),
    _alone("zero but for 1 %", _few_differ, rows=3000),
    Built("one column of another", Claims(), "1 − 2x is x", _twice, (_UNIT, (-1.0, 1.0))),
    Built("a sum of two", Claims(), "two equations for two", _sum, (_UNIT, _UNIT, (0.0, 2.0)), classes=3),
    Built("a flag of an amount", Claims(), "the flag follows from it", _flag_of_amount, (_UNIT, _UNIT), 1),
    Built(
        "30 uniform",
        Claims("some", "open", "column"),
        "a fifth of some column in one of twenty models; less on average over models",
        _beside(*[_uniform] * 30),
        (_UNIT,) * 30,
    ),
    Built("12 two-valued", Claims(), "no two rows have one sum", _beside(*[_flag(0.5)] * 12), (_UNIT,) * 12),
)
