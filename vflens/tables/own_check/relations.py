"""What columns of a table have to do with each other: one is a function of others, rows repeat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from vflens.tables.own_check.flaw import Flaw, a_flaw, of
from vflens.tables.own_check.profile import ColumnProfile
from vflens.tables.table import Table
from vflens.types import Array

_ROWS = 20_000  # that are looked at
_TIMES = 10  # as many rows as columns: fewer fit by chance
_LEFT = 1e-3  # of the variance, which a function of others leaves at most
_PART = 0.02  # of a coefficient of scaled columns that counts
_MOST = 3  # columns of a product
_SEED, _DEVIATIONS = 0, 3


@dataclass
class Sketch:
    """What :func:`relations` looks at, so that memory need not hold the table.

    ``some``: column of the file → of each that it becomes, whether it is one-hot, and some values. ``drawn``
    (n,): a random combination of all, which is equal where rows are; ``dealt`` (n,): of shuffled columns of
    the file, each moved by another number of rows. ``alike``: rows may be equal. Where none are in some
    columns, none are in all, and both combinations end.
    """

    some: dict[str, list[tuple[bool, Array]]] = field(default_factory=dict)
    drawn: Array | float = 0.0
    dealt: Array | float = 0.0
    alike: bool = True

    def see(self, column: ColumnProfile) -> None:
        """Take up a column of numbers alone."""
        if column.name not in self.some:
            self._add(column.name, False, column.numbers())

    def joined(self, table: Table) -> Sketch:
        """It and the columns of ``table``."""
        both = replace(self, some={name: [*parts] for name, parts in self.some.items()})
        for name, values in zip((c.name for c in table.columns), table.features.T, strict=True):
            both._add(table.one_hot.get(name, name), name in table.one_hot, values)
        return both

    def _add(self, name: str, is_hot: bool, values: Array) -> None:
        if self.alike:
            self._combine(name, values)
        self.some.setdefault(name, []).append((is_hot, np.array(values[:: -(-len(values) // _ROWS)], float)))

    def _combine(self, name: str, values: Array) -> None:
        part = np.random.default_rng([_SEED, before := self.width]).normal() * values
        moved = np.random.default_rng([_SEED, *name.encode()]).integers(max(1, len(values)))
        self.drawn, self.dealt = self.drawn + part, self.dealt + np.roll(part[_order(len(part))], moved)
        if not before & (before + 1):  # a look takes as long as several columns
            self.alike = _repeats(self.drawn) > 0

    @property
    def width(self) -> int:
        """How many columns the table has."""
        return sum(map(len, self.some.values()))


@lru_cache(maxsize=1)
def _order(rows: int) -> Array:
    """One order of so many rows, drawn: to draw one for each column takes longer."""
    return np.random.default_rng(_SEED).permutation(rows)


def relations(sketch: Sketch, columns: Sequence[str]) -> Iterator[Flaw]:
    """What is to be known of the ``columns`` of a table together, none of which refuses it."""
    parts = [(name, *part) for name in columns for part in sketch.some[name]]
    x, names = np.column_stack([values for *_, values in parts]), [name for name, *_ in parts]
    order = sorted(range(len(names)), key=lambda j: not parts[j][1])
    found = dict(_functions(x[:, order], [names[j] for j in order]))
    positive = [j for j in order if (x[:, j] > 0).all()]
    products = dict(_functions(np.log(x[:, positive]), [names[j] for j in positive]))
    found = {**{name: others for name, others in products.items() if len(others) <= _MOST}, **found}
    for name, others in found.items():
        sentence = f"{name} is nearly a function of {', '.join(others)}"
        yield a_flaw(
            "function of others", name, sentence, "who learns these learns it: share it only if needed"
        )
    yield from _repeated(sketch)


def _functions(x: Array, names: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Columns of ``x`` (n, d) that are linear functions of columns before them, and these."""
    spread: Array = x.std(axis=0)
    x = x[:, spread > 0] / spread[spread > 0]
    names = [name for name, s in zip(names, spread, strict=True) if s > 0]
    if not names or len(x) < _TIMES * len(names):
        return
    r: Array = np.linalg.qr(x - x.mean(axis=0)).R
    basis: list[int] = []
    for j in range(len(names)):
        share, *_ = np.linalg.lstsq(r[:, basis], r[:, j], rcond=None)
        rest = r[:, j] - r[:, basis] @ share
        if rest @ rest > _LEFT * (r[:, j] @ r[:, j]):
            basis.append(j)
        elif others := [o for o in dict.fromkeys(_named(share, basis, names)) if o != names[j]]:
            yield names[j], others


def _named(share: Array, basis: list[int], names: list[str]) -> list[str]:
    return [names[i] for i, part in zip(basis, share.tolist(), strict=True) if abs(part) > _PART]


def _repeated(sketch: Sketch) -> Iterator[Flaw]:
    """Rows that equal an earlier one under another id, more than if each column were dealt anew."""
    if not sketch.alike:
        return
    repeats, chance = _repeats(sketch.drawn), _repeats(sketch.dealt)
    if repeats > chance + _DEVIATIONS * chance**0.5:
        sentence = f"all columns repeat an earlier row in {of(repeats, np.size(sketch.drawn))}"
        yield a_flaw("repeated rows", "", sentence, "remove them if they are one person under two ids")


def _repeats(combination: Array | float) -> int:
    """How many of its numbers (n,) equal another one, but for one of each."""
    return np.size(combination) - len(np.unique(combination))
