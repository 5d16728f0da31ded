"""Columns with few possible values: every combination of them that satisfies the equations (RVG §IX).

A few real equations can determine one combination of many finite columns: an underdetermined system is then
solved exactly.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, TypeAlias

import numpy as np
from pydantic import Field, FiniteFloat

from vflens.attacks.helpers.linear.alphabets import scaled_alphabet
from vflens.errors import ProtocolError
from vflens.numerics.estimators.box import nearest_in_box
from vflens.numerics.estimators.combinations import halves, solutions
from vflens.numerics.linear_system import RANK_RTOL, row_basis
from vflens.plugins.attack import LinearAttack, linear_estimate
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, ColumnInfo, Estimate, Knowledge, Moments, RowStatus
from vflens.words import counted

Letters: TypeAlias = Annotated[tuple[FiniteFloat, ...], Field(min_length=1)]

#: Rows whose combinations are held together.
CHUNK = 2**13


class FiniteAlphabet(LinearAttack):
    """The mean of all x that solve A x = b' with finite columns from their alphabets; else RCC2.

    Columns without an alphabet are free: the equations that do not involve them decide on the finite ones,
    then the point of the box nearest to ½ fills in the rest.
    """

    needs: ClassVar[frozenset[Knowledge]] = LinearAttack.needs | {Knowledge.METADATA}

    alphabets: tuple[Letters | None, ...] | None = Field(
        None,
        description="values in [0, 1] of each unknown column, None for a free one; default: the metadata",
    )
    budget: int = Field(1 << 14, ge=1, le=1 << 22, description="most combinations in each half of the search")
    tolerance: float = Field(1e-9, gt=0, lt=1, description="of ‖A x − b'‖, as a share of ‖b'‖ + ‖A‖")

    def suits(self, columns: Sequence[ColumnInfo]) -> bool:
        """Whether there are alphabets, with few enough combinations; without them it is rcc2."""
        alphabets = [np.array(c.alphabet) for c in columns if c.alphabet]
        return bool(alphabets) and halves(alphabets, self.budget) is not None

    def joint(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Takes the alphabets from the metadata; see :meth:`vflens.plugins.attack.LinearAttack.joint`."""
        if self.alphabets is not None:
            return super().joint(view, rng=rng)
        found = tuple(scaled_alphabet(column) for column in view.unknown_columns())
        return self.model_copy(update={"alphabets": found}).joint(view, rng=rng)

    def solve(
        self, A: Array, b: Array, *, rng: np.random.Generator, moments: Moments | None = None
    ) -> Estimate:
        """Extra "candidates" (N,): combinations that fit, −1 where too many are possible to tell; columns
        without a
        coefficient, of which every letter fits, are not counted.

        A row that no combination fits is INCONSISTENT.

        Raises:
            ProtocolError: another number of alphabets than columns.
        """
        alphabets = self.alphabets or (None,) * A.shape[1]
        if len(alphabets) != A.shape[1]:
            raise ProtocolError(
                f"alphabets names {counted(len(alphabets), 'column')} and A has {A.shape[1]}: give one "
                "entry per column, null for a free one"
            )
        candidates, values = np.empty(len(b), int), np.empty((len(b), A.shape[1]))
        for first in range(0, len(b), CHUNK):
            rows = slice(first, first + CHUNK)
            candidates[rows], fitted = self._search(A, b[rows], alphabets)
            fits = candidates[rows, None] > 0
            values[rows] = np.where(fits, fitted, _nearest_to_half(A, b[rows]))
        estimate = linear_estimate(values, A, b)
        estimate.status[candidates == 0] = RowStatus.INCONSISTENT
        return replace(estimate, extras={**estimate.extras, "candidates": candidates})

    def _search(self, A: Array, b: Array, alphabets: Sequence[Letters | None]) -> tuple[Array, Array]:
        """How many combinations fit each row, −1 where unknown, and the mean (N, d) of those that do."""
        candidates, values = np.full(len(b), -1), np.zeros((len(b), A.shape[1]))
        seen = np.linalg.norm(A, axis=0) > RANK_RTOL * np.linalg.norm(A)
        every = {j: np.unique(np.array(a, float)) for j, a in enumerate(alphabets) if a is not None}
        letters = {j: a for j, a in every.items() if seen[j]}
        finite, free = list(letters), [j for j in range(A.shape[1]) if j not in letters]
        U = _left_null_basis(A[:, free])  # the equations without free columns
        sides = halves(list(letters.values()), self.budget)
        if not finite or sides is None or U.shape[1] == 0:
            return candidates, values
        tolerance = self.tolerance * (np.linalg.norm(b, axis=1) + np.linalg.norm(A))
        found = solutions(U.T @ A[:, finite], b @ U, list(letters.values()), sides, tolerance)
        candidates[found.complete] = np.bincount(found.rows, minlength=len(b))[found.complete]
        total = np.zeros((len(b), len(finite)))
        np.add.at(total, found.rows, found.values)
        values[:, finite] = total / np.maximum(candidates, 1)[:, None]
        values[:, free] = _nearest_to_half(A[:, free], b - values[:, finite] @ A[:, finite].T)
        for j in every.keys() - letters.keys():  # no equation restricts it: each letter fits
            values[:, j] = every[j].mean()
        return candidates, values


def _nearest_to_half(A: Array, b: Array) -> Array:
    return nearest_in_box(A, b, np.full(A.shape[1], 0.5)).x


def _left_null_basis(B: Array) -> Array:
    """Orthonormal columns (m, m − rank B) that span {u : uᵀB = 0}."""
    U = row_basis(B.T)
    full: Array = np.linalg.svd(np.eye(len(B)) - U @ U.T)[0][:, : len(B) - U.shape[1]]
    return full
