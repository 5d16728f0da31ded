"""What a defence costs and what use is left behind it: one rule and its words, for audit and scoreboard.

The measure is R² of a number; of two classes AUC, since a model that answers the frequent class to everybody
has its share of right answers; else accuracy. Defended and undefended models are paired by seed; intervals
are 95 % (Student's t). No attack is needed for it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

from vflens.experiments.outcome.words import number
from vflens.experiments.results.utility import UTILITY, worth
from vflens.numerics.measures.intervals import interval
from vflens.storage.json_file import Number
from vflens.storage.metrics import Name
from vflens.types import Facts

FEWEST = 5  # finite results, seed by seed, for a verdict
DECIDED = 0.02  # the largest half width of an interval that decides what a defence costs


class Use(NamedTuple):
    """A seed's models: the ``figure`` of the federation's model, and that of one of the active party's data
    ``alone`` (of clients the mean).
    """

    figure: float
    alone: float

    @property
    def is_finite(self) -> bool:
        """Whether both are known: AUC is nan on rows of one class."""
        return all(map(math.isfinite, self))


def use_of(utility: Facts, classes: int) -> tuple[str, Use | None]:
    """What a run's model is worth by its ``utility``, and by which measure; None where that is not there.

    ``classes`` is 1 of a numeric label.
    """
    known = {"auc", "auc_alone"} <= utility.keys()
    name = Name.AUC if classes == 2 and known else worth(utility)
    alone = f"{name}_alone"
    both = {name, alone} <= utility.keys()
    return UTILITY[name], Use(utility[name], utility[alone]) if both else None


@dataclass(frozen=True)
class Cost:
    """Seed by seed: what a defence takes from ``measure``, what the defended model gains over the active
    party alone, and what the undefended one does.
    """

    measure: str
    lost: tuple[Number, ...]
    gained: tuple[Number, ...] = ()
    gained_before: tuple[Number, ...] = ()

    @classmethod
    def of(cls, measure: str, defended: Mapping[int, Use], undefended: Mapping[int, Use]) -> Self:
        """The cost over the seeds in which both have finite figures."""
        seeds = [s for s in sorted(defended.keys() & undefended.keys()) if defended[s].is_finite]
        pairs = [(defended[s], undefended[s]) for s in seeds if undefended[s].is_finite]
        return cls(
            measure,
            tuple(before.figure - after.figure for after, before in pairs),
            tuple(after.figure - after.alone for after, _ in pairs),
            tuple(before.figure - before.alone for _, before in pairs),
        )

    @property
    def mean(self) -> float:
        """What is lost on average."""
        return interval(self.lost)[0]

    @property
    def gain(self) -> str:
        """What the defended model gains over the active party alone, and the half width."""
        return _spread(self.gained)

    @property
    def half(self) -> float:
        """The half width of its 95 % interval."""
        return interval(self.lost)[1]

    @property
    def loss(self) -> float:
        """What counts as lost: the mean, but 0 where its interval contains 0 or lies below it."""
        return max(self.mean, 0.0) if abs(self.mean) > self.half else 0.0

    @property
    def is_decided(self) -> bool:
        """Whether a defence that is worth its cost could be chosen by it."""
        return self._undecided() is None

    def __str__(self) -> str:
        return self._undecided() or self._decided()

    def _undecided(self) -> str | None:
        """Why nothing is said of the cost."""
        if len(self.lost) < FEWEST:
            return f"not measured ({len(self.lost)} of at least {FEWEST} results)"
        if not gains(self.gained_before):
            return f"the model is of no use (gain {_spread(self.gained_before)})"
        if not gains(self.gained):
            return f"no use left (gain {self.gain})"
        mean, half = self.mean, self.half
        return f"not decided ({number(mean)} ± {number(half)})" if half > DECIDED else None

    def _decided(self) -> str:
        mean, half = self.mean, self.half
        if abs(mean) <= half:
            return f"at no measured cost (± {number(half)})"
        amount = f"{number(abs(mean))} ± {number(half)}"
        return f"at a cost of {amount} {self.measure}" if mean > 0 else f"with {amount} more {self.measure}"


def _spread(values: tuple[float, ...]) -> str:
    mean, half = interval(values)
    return f"{number(mean)} ± {number(half)}" if values else "–"


def gains(gained: tuple[float, ...]) -> bool:
    """Whether the interval of what a model gains over the active party alone lies above 0."""
    mean, half = interval(gained)
    return mean - half > 0
