"""What columns of a table have to do with each other: one is a function of others, rows repeat."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vflens.tables.own_check.flaw import Flaw, a_flaw, of
from vflens.tables.table import Table
from vflens.types import Array

_ROWS = 20_000  # that are looked at
_TIMES = 10  # as many rows as columns: fewer fit by chance
_LEFT = 1e-3  # of the variance, which a function of others leaves at most
_PART = 0.02  # of a coefficient of scaled columns that counts
_MOST = 3  # columns of a product
_SEED, _DEVIATIONS = 0, 3


def relations(table: Table) -> Iterator[Flaw]:
    """What is to be known of the columns of ``table`` together, none of which refuses it."""
    x = np.asarray(table.features[:: -(-len(table.features) // _ROWS)], np.float64)
    names = [table.one_hot.get(c.name, c.name) for c in table.columns]
    order = sorted(range(len(names)), key=lambda j: table.columns[j].name not in table.one_hot)
    found = dict(_functions(x[:, order], [names[j] for j in order]))
    positive = [j for j in order if (x[:, j] > 0).all()]
    products = dict(_functions(np.log(x[:, positive]), [names[j] for j in positive]))
    found = {**{name: others for name, others in products.items() if len(others) <= _MOST}, **found}
    for name, others in found.items():
        sentence = f"{name} is nearly a function of {', '.join(others)}"
        yield a_flaw(
            "function of others", name, sentence, "who learns these learns it: share it only if needed"
        )
    yield from _repeated(table, names)


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


def _repeated(table: Table, names: list[str]) -> Iterator[Flaw]:
    """Rows that equal an earlier one under another id, more than if each column were dealt anew."""
    rng, groups = np.random.default_rng(_SEED), list(dict.fromkeys(names))
    marks = np.zeros((len(table.features), len(groups)))
    for j, name in enumerate(names):
        marks[:, groups.index(name)] += table.features[:, j] * rng.normal()
    repeats, chance = (len(x) - len(np.unique(x.sum(axis=1))) for x in (marks, rng.permuted(marks, axis=0)))
    if repeats > chance + _DEVIATIONS * chance**0.5:
        sentence = f"all columns repeat an earlier row in {of(repeats, len(table.features))}"
        yield a_flaw("repeated rows", "", sentence, "remove them if they are one person under two ids")
