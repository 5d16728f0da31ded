"""The black box with one unknown column: its values up to scale from the scores alone (RVG §VI).

No parameter of the target is read; only signs are known. It assumes that the column comes near both of its
bounds among the rows seen.
"""

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from vflens.errors import KnowledgeError
from vflens.numerics.estimators.one_feature import Signs, contradicts, reconstruct
from vflens.plugins.attack import Attack
from vflens.plugins.declared import Audited, Stated
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Estimate, Knowledge, RowStatus, statuses


class BlackBox(Attack):
    """v = ωx + b₀ stretched to [0, 1]; see :mod:`vflens.numerics.estimators.one_feature` for its cases."""

    needs: ClassVar[frozenset[Knowledge]] = frozenset(
        {Knowledge.SCORES, Knowledge.OWN_FEATURES, Knowledge.PARAMETERS, Knowledge.MOMENTS}
    )
    rowwise: ClassVar[bool] = False
    unknown_columns: ClassVar[int | None] = 1
    audited: ClassVar[Audited | None] = Audited(settings={"signs": "unknown", "population_mean": "disclosed"})
    stated: ClassVar[Stated | None] = Stated(stretched=True)

    signs: Signs = Field(
        "same",
        description="what is known of ω and b₀, for the two consecutive classes whose log-ratio varies most",
    )
    population_mean: Annotated[float, Field(ge=0, le=1)] | Literal["disclosed"] | None = Field(
        None,
        description="of the column in [0, 1]; resolves an ambiguous orientation; disclosed: from the moments",
    )

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """See :meth:`vflens.plugins.attack.Attack.reconstruct`.

        A row with a score of exactly 0 is SATURATED and ½; AMBIGUOUS rows are ½; all rows are INCONSISTENT
        where the signs that are known cannot be true.

        Raises:
            KnowledgeError: there are several unknown columns, or the mean was never disclosed.
        """
        unknown = sum(view.widths().values())
        if unknown != self.unknown_columns:
            raise KnowledgeError(
                f"black_box tells one unknown column from its scores and there are {unknown}: use a "
                "white-box attack, or leave it out"
            )
        log_c = view.scores()
        known = view.own("features") @ view.own("parameters").T
        usable = np.isfinite(log_c).all(axis=1)
        v = _observed(log_c[usable] - known[usable])
        mean = view.moments().mean[0] if self.population_mean == "disclosed" else self.population_mean
        values, status = np.full(len(log_c), 0.5), statuses(len(log_c), RowStatus.SATURATED)
        values[usable], ambiguous = reconstruct(v, self.signs, mean)
        status[usable] = RowStatus.AMBIGUOUS if ambiguous else RowStatus.OK
        if contradicts(v, self.signs):
            status[usable] = RowStatus.INCONSISTENT
        return Estimate(view.target, view.rows, values[:, None], status)


def _observed(z: Array) -> Array:
    """The difference (n,) of consecutive classes of ``z`` (n, k) that varies most."""
    differences = np.diff(z, axis=1)
    if not len(z):
        return np.zeros(0)
    observed: Array = differences[:, np.argmax(np.ptp(differences, axis=0))]
    return observed
