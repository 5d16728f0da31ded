"""A finding: what an attack reaches of one thing, beside the best blind guess, and what is known of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from vflens.experiments.outcome.decide import HARDLY, State, above_guess, better, beyond_null, needed
from vflens.numerics.measures.advantage import wilson
from vflens.score.service import MIN_ROWS
from vflens.types import Document, Facts
from vflens.words import counted

_EXACT = 1 - 1e-6  # of the blind guess's error taken away: what rounding and solvers leave


class Quantity(StrEnum):
    """What a finding is of."""

    ERROR = "error"  # of a column: root mean squared, in its own unit
    RIGHT = "right"  # of a column that takes few values: the share of right ones
    WITHIN = "within"  # of a column: the share of rows to within the tolerance
    ALL = "all"  # of all columns, scaled to [0, 1]: the mean squared error
    MEAN = "mean"  # of a column, scaled to [0, 1]: how far off its mean is
    LABELS = "labels"  # the share of right ones
    MEMBERS = "members"  # AUC over pairs of a training row and another
    NAMED = "named"  # the share of training rows named at 10 % false alarms
    WHOLE = "whole"  # the share of rows with all columns to within their tolerances
    ALONE = "alone"  # the share of these that fit nobody else
    SITES = "sites"  # the share of rows of all clients that are named as their own client's


AFFINE = "columns after the best affine map"  # the subject of what is found up to one
#: The subjects of SITES.
SITE, CASE = "which client a training row is from", "which client a prediction row is from"
_ERRORS = {Quantity.ERROR, Quantity.ALL, Quantity.MEAN}
_PEOPLE = {Quantity.WHOLE, Quantity.ALONE}
_BY_ROWS = {*_PEOPLE, Quantity.LABELS}  # those of training and of predictions are two things


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What ``attack`` reaches of ``subject``, a column or a word, of ``target`` on ``rows`` rows of
    ``scored_set``: ``value`` with the ends of its 95 % interval, None where nobody has one, beside what the
    best ``blind`` guess, ``guess``, reaches. ``adversary`` reads what it takes, in words.

    Errors are root mean squared, in the column's own unit; ``unit`` is False where nobody knows it. Of ALL
    they are mean squares, of MEAN distances; of the others shares of right answers. ``tries`` attacks were
    tried on it. ``varies``: the column takes more than one value among these rows; ``deciding``: how many
    rows would hold enough of its other values, 0 of a column that never varies. ``there``: the rows of its
    table, 0 where nobody knows. ``released``: what a given
    model lets out. ``imputation``: what a guess from other columns finds, None where it did not run;
    ``tolerance``: how far from the truth a value counts as found. ``reason``: why nobody knows. ``label``:
    the subject is the target's label. ``deviation``: the standard one of a permutation null around
    ``blind``; None where a guess knows nothing. ``anew``: what the attack finds of labels dealt anew after
    training, of what a guess leaves open; None where that was not tried. ``where`` and ``source`` are those
    of its :class:`Findings`.
    """

    quantity: Quantity
    subject: str
    attack: str
    target: str
    scored_set: str
    rows: int
    value: float
    low: float | None = None
    high: float | None = None
    blind: float
    guess: str = ""
    adversary: str = ""
    tries: int = 1
    unit: bool = True
    varies: bool = True
    deciding: int = 0
    there: int = 0
    released: str = ""
    imputation: float | None = None
    tolerance: float | None = None
    reason: str = ""
    label: bool = False
    deviation: float | None = None
    anew: float | None = None
    where: str = ""
    source: str = ""

    @classmethod
    def of_share(cls, quantity: Quantity, share: float, rows: int, blind: float, **place: object) -> Finding:
        """A ``share`` of ``rows`` rows, with Wilson's interval; ``place``: the other fields."""
        low, high = wilson(share, rows)
        ends: Facts = {"value": share, "low": low, "high": high, "blind": blind}
        return cls(quantity=quantity, rows=rows, **ends, **place)  # type: ignore[arg-type]

    @property
    def is_share(self) -> bool:
        """Whether value and guess are shares of right answers."""
        return self.quantity not in _ERRORS

    @property
    def errors(self) -> tuple[float, float]:
        """The error and the blind guess's, of one unit: of a share 1 less it."""
        return (1 - self.value, 1 - self.blind) if self.is_share else (self.value, self.blind)

    @property
    def guessed(self) -> float:
        """What the best of all guesses reaches."""
        return max(self.blind, self.imputation or 0.0) if self.is_share else self.blind

    @property
    def gain(self) -> float:
        """How much of what a guess leaves open is taken, in the quantity itself: 1 is exact, 0 no better."""
        wrong, left = (1 - self.value, 1 - self.guessed) if self.is_share else (self.value, self.blind)
        return 1 - wrong / left if left else 0.0

    @property
    def taken(self) -> float:
        """:attr:`gain` where the interval of the error ends below the guess's, else 0."""
        return self.gain if (self.value if self.high is None else self.high) < self.blind else 0.0

    @property
    def share(self) -> float:
        """What is taken of what a blind guess leaves open: 1 is exact, 0 no better; of squared errors."""
        square = self._mean_square(self.blind)
        if self.quantity is Quantity.ERROR:
            return max(0.0, 1 - self._mean_square(self.value) / square) if square else 0.0
        return max(0.0, self.gain)

    @property
    def is_exact(self) -> bool:
        """Whether the error is that of rounding and solvers."""
        root = math.sqrt if self.quantity is Quantity.ALL else float
        return not self.is_share and root(self.value) < (1 - _EXACT) * root(self.blind)

    @property
    def half_width(self) -> float | None:
        """Half the width of the interval of a mean square; None where nobody has one."""
        return None if self.high is None else self._mean_square(self.high) - self._mean_square(self.value)

    def _mean_square(self, figure: float) -> float:
        """A ``figure`` as a mean square; infinite beyond what a float holds."""
        return figure * figure if self.quantity is Quantity.ERROR else figure

    @property
    def state(self) -> State:
        """What is known. A column that does not vary here, or fewer than 50 rows, decide nothing; what is not
        found stays open where a ``reason`` says that more may be.
        """
        if not self.attack:
            return State.UNTESTED
        if not self.varies and not self.deciding:
            return State.NOT_FOUND  # it never varies: there is nothing to find
        if not self.varies or (self.quantity in _FROM_50 and self.rows < MIN_ROWS):
            return State.UNDECIDED
        state = self._at(self.rows)
        return State.UNDECIDED if self.reason and state is State.NOT_FOUND else state

    @property
    def is_misled(self) -> bool:
        """Whether the attack clearly errs more than a guess. Without a defence it learnt the column wrongly,
        and shows nothing of what another attack finds.
        """
        if self.quantity is not Quantity.ERROR or self.low is None or not self.varies:
            return False
        return self.low > math.sqrt(1 + HARDLY) * self.blind > 0

    @property
    def beyond_anew(self) -> State:
        """Whether it finds more of the labels than of labels dealt anew, which training never saw."""
        if self.anew is None:
            return State.UNTESTED
        return above_guess(self.value, self.blind + max(0.0, self.anew) * (1 - self.blind), self.rows)

    @property
    def rows_needed(self) -> int:
        """How many rows would decide, if figures stay; 0 where none or too many would."""
        held = self.reason and self._at(self.rows) is State.NOT_FOUND  # more rows do not take the doubt away
        if self.state is not State.UNDECIDED or held:
            return 0
        rows = max(MIN_ROWS, self.deciding)
        if not self.varies:
            return rows
        return needed(self._at, max(rows, self.rows) if self.quantity in _ROWS_DECIDE else self.rows)

    def _at(self, rows: int) -> State:
        """The state of these figures on ``rows`` rows."""
        if self.deviation is not None:
            deviation = self.deviation * math.sqrt(self.rows / rows)
            return beyond_null(self.value, self.blind, deviation, self.tries)
        if self.is_share:
            return above_guess(self.value, self.guessed, rows, self.tries)
        half, (value, blind) = self.half_width, map(self._mean_square, (self.value, self.blind))
        narrowed = None if half is None else half * math.sqrt(self.rows / rows)
        return better(value, narrowed, blind, rows, self.tries)

    @classmethod
    def of_json(cls, facts: Facts) -> Finding:
        """The finding whose :attr:`json` is ``facts``; what an older version lacks has its default."""
        own = {name: facts[name] for name in cls.__dataclass_fields__ if name in facts}
        return cls(**{**own, "quantity": Quantity(facts["quantity"])})

    @property
    def json(self) -> Document:
        """It under stable keys."""
        found = {**vars(self), "quantity": self.quantity.value, "state": self.state.value}
        return {**found, "share": self.share, "rows_needed": self.rows_needed}


#: Why a column is open of which no attack does as well as a guess.
MISLED = "no attack does as well as a guess: more known rows would decide"
_FROM_50 = {Quantity.RIGHT, Quantity.SITES}
_ROWS_DECIDE = {*_FROM_50, Quantity.ERROR, Quantity.ALL}


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What attacks found in one federation, which ``where`` names; the ``columns`` that it has, and its
    ``source``: a run, an audit, a sweep. An attack of ``failed`` found nothing because it broke; one of
    ``capped`` tried so many rows only, of more. ``more`` says of an audit how more attacked rows are stated,
    by a key of its plan.
    """

    where: str = ""
    found: tuple[Finding, ...] = ()
    columns: tuple[str, ...] = ()
    defended: bool = False
    failed: tuple[str, ...] = ()
    capped: Mapping[str, int] = field(default_factory=dict)
    source: str = ""
    more: Callable[[str, int], str] | None = None

    def of(self, target: str) -> Findings:
        """Those of ``target``."""
        return replace(self, found=tuple(f for f in self.found if f.target == target))

    def only(self, *quantities: Quantity) -> tuple[Finding, ...]:
        """Those of ``quantities``."""
        return tuple(f for f in self.found if f.quantity in quantities)

    def by_column(self) -> dict[str, tuple[Finding, ...]]:
        """Column → what is found of it."""
        return {name: tuple(f for f in self.found if f.subject == name) for name in self.columns}

    def placed(self) -> tuple[Finding, ...]:
        """All, each with ``where`` and ``source``."""
        return tuple(replace(f, where=self.where, source=self.source) for f in self.found)

    def beyond_blind(self) -> tuple[Finding, ...]:
        """Those that are found."""
        return tuple(f for f in self.found if f.state is State.FOUND)

    def most_exposed(self) -> Finding | None:
        """The found column, in its own unit, of which most is taken; one of few values by its right ones."""
        of_few = {_place(f) for f in self.only(Quantity.RIGHT)}
        own = (f for f in self.beyond_blind() if f.quantity in (Quantity.ERROR, Quantity.RIGHT))
        judged = (f for f in own if f.quantity is Quantity.RIGHT or _place(f) not in of_few)
        return max(judged, key=lambda f: 1.0 if f.is_exact else f.gain, default=None)

    def best(self) -> tuple[Finding, ...]:
        """For each subject the worst attack: found, else not decided, else not found; of two alike the one
        that takes most. Nothing is not found while an attack failed.
        """
        worst: dict[tuple[str, ...], Finding] = {}
        for f in self.found:
            rows = f.scored_set if f.quantity in _BY_ROWS else ""
            key = (f.adversary, f.target, f.quantity, f.subject, rows)
            if key not in worst or _severity(f) > _severity(worst[key]):
                worst[key] = f
        here = replace(self, found=tuple(worst.values())).placed()
        return tuple(replace(f, reason=self._doubt(f)) for f in here)

    def _doubt(self, f: Finding) -> str:
        if f.is_misled and not self.defended:
            return MISLED
        if self.failed and f.state is State.NOT_FOUND:
            return f"{', '.join(self.failed)} failed and may find more"
        if f.state is State.UNDECIDED and self.capped.get(f.attack) == f.rows:
            return f"{f.attack} tried {counted(f.rows, 'row')} only"
        return f.reason

    @property
    def json(self) -> list[Document]:
        """Each under stable keys."""
        return [f.json for f in self.placed()]


def _place(f: Finding) -> tuple[str, ...]:
    return f.adversary, f.attack, f.target, f.scored_set, f.subject


def sound(found: Sequence[Finding]) -> list[Finding]:
    """``found`` without misled attacks, where others stand of the same quantity."""
    stand = {f.quantity for f in found if not f.is_misled}
    return [f for f in found if not f.is_misled or f.quantity not in stand]


def _severity(f: Finding) -> tuple[bool, int, float]:
    gain = round(f.gain, 9)  # of exact ones rounding decides nothing
    return not f.is_misled, -list(State).index(f.state), gain


def with_tries(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """``found`` with the number of attacks tried on the same thing: a column to within its tolerance, a
    column's error, people, named rows; attacks on all columns, labels and members stand together.
    """
    every = list(found)
    tries = Counter(map(_family, every))
    return tuple(replace(f, tries=tries[_family(f)]) for f in every)


def _family(f: Finding) -> str:
    if f.quantity is Quantity.WITHIN:
        return f"{f.quantity} {f.subject}"
    if f.quantity in _PEOPLE:
        return Quantity.WHOLE
    return Quantity.ALL if f.quantity in _TOGETHER else f.quantity


_TOGETHER = (Quantity.ALL, Quantity.LABELS, Quantity.MEMBERS)
#: What is judged of a whole federation, beside a blind guess.
OVERALL: Sequence[Quantity] = (*_TOGETHER, Quantity.SITES)
