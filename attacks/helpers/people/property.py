"""Properties of a population: the mean of each of its columns, which of a column of two values is a share."""

from abc import abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from vflens.attacks.helpers.people.populations import Featured, told_mean
from vflens.plugins.attack import Attack
from vflens.plugins.declared import Audited
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Estimate, Knowledge, Phase, statuses

_AT_ONCE = 2**18  # numbers that are gathered at a time: they stay in the cache


class Features(NamedTuple):
    """The features ``attacked`` (q,) of the attacked population, and what gives those of known rows."""

    attacked: Array
    of_known: Featured


def means_of(attacked: Array, known: Array) -> Features:
    """Features that are means over rows: of the attacked ones (N, q) and of ``known`` ones (m, q)."""

    def means(chosen: Array) -> Array:
        parts = np.array_split(chosen, 1 + chosen.size * known.shape[1] // _AT_ONCE)
        return np.concatenate([known[part].mean(axis=1) for part in parts])

    return Features(attacked.mean(axis=0), means)


class PropertyAttack(Attack):
    """Every row gets the columns' means; see :func:`vflens.attacks.helpers.people.populations.told_mean`."""

    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.DISCLOSE})
    estimated_rows: ClassVar[frozenset[Phase]] = frozenset({Phase.PREDICT, Phase.TRAIN})
    rowwise: ClassVar[bool] = False
    exact: ClassVar[bool] = False
    means_only: ClassVar[bool] = True
    audited: ClassVar[Audited | None] = None  # an audit's known and unknown rows are one population

    populations: int = Field(
        300, ge=2, le=100_000, description="populations of known rows for each column, and of halves of them"
    )
    shift: float = Field(
        1.0,
        gt=0,
        le=10,
        description="how far their means lie from that of the known rows, in deviations of the column",
    )

    @abstractmethod
    def features(self, view: AdversaryView, known: Array, x: Array, rng: np.random.Generator) -> Features:
        """Those of the rows of ``view``, and of the ``known`` rows (m,) with the columns ``x`` (m, d)."""

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Columns (N, d) in [0, 1]; see :meth:`vflens.plugins.attack.Attack.reconstruct`.

        Raises:
            KnowledgeError: no rows were granted.
        """
        known, x = view.auxiliary()
        if not len(view.rows):
            return Estimate(view.target, view.rows, np.zeros((0, x.shape[1])), statuses(0))
        attacked, of_known = self.features(view, known, x, rng)
        means = []
        for number, column in enumerate(x.T):
            drawn = told_mean(
                column, of_known, attacked, populations=self.populations, shift=self.shift, rng=rng
            )
            means.append(drawn)
            view.progress("columns", number + 1, x.shape[1])
        values = np.tile(np.clip(means, 0, 1), (len(view.rows), 1))
        return Estimate(view.target, view.rows, values, statuses(len(values)))


OWN = frozenset({Knowledge.AUXILIARY, Knowledge.OWN_FEATURES})
