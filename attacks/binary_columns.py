"""Training in the clear: columns of 0 and 1, exactly and without an affine map (after Ye et al., 2022).

It looks for two-valued columns in the span that clear_features finds.
"""

from dataclasses import replace
from typing import ClassVar

import numpy as np
from pydantic import Field

from vflens.attacks.clear_features import ClearFeatures
from vflens.numerics.binary_columns import binary_columns
from vflens.plugins.declared import Audited
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Estimate


class BinaryColumns(ClearFeatures):
    """The two-valued columns of the span of the factors first, then the rest of the span, scaled to [0, 1].

    Which of the target's columns is which, and which value is 1, only the target knows.
    """

    audited: ClassVar[Audited | None] = None  # clear_features finds the same span

    starts: int = Field(
        500,
        ge=1,
        le=1_000_000,
        description="rows from which the search begins, at most, and as many random directions",
    )
    tolerance: float = Field(
        0.02, gt=0, lt=1, description="share of a found column's variance that may lie outside the span"
    )

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Columns (N, d); see :meth:`vflens.attacks.clear_features.ClearFeatures.reconstruct`."""
        factors = super().reconstruct(view, rng=rng)
        if len(factors.values) == 0:
            return factors
        found = binary_columns(factors.values, self.starts, self.tolerance, rng)
        rest = _rest(factors.values, found)
        return replace(factors, values=np.column_stack([found, rest]))


def _rest(x: Array, found: Array) -> Array:
    """The principal components (n, d − b) of ``x`` (n, d) that ``found`` (n, b) leaves, scaled to [0, 1]."""
    known = np.column_stack([np.ones(len(x)), found])
    left = x - known @ np.linalg.lstsq(known, x, rcond=None)[0]
    u, s, _ = np.linalg.svd(left, full_matrices=False)
    kept = min(x.shape[1] - found.shape[1], len(s))
    rest = np.zeros((len(x), x.shape[1] - found.shape[1]))
    rest[:, :kept] = (u * s)[:, :kept]
    low, high = rest.min(axis=0), rest.max(axis=0)
    scaled: Array = (rest - low) / np.where(high > low, high - low, 1)
    return scaled
