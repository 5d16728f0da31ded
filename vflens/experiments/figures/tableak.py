"""TabLeak's setting: batches of Adult from their gradient at a fresh network (Vero et al., ICML 2023).

Adult in batches of 16, 32 and 128 at layers of 100 and 100 units, labels known; beside it bank in batches of
8 at one layer of 32, with a descent that knows no box. The attacks have their defaults.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from vflens.datasets._resolve import dataset
from vflens.errors import DataError
from vflens.experiments.figures import FigureOptions, Page
from vflens.experiments.pages.drawing import Drawing, TextTable
from vflens.experiments.pages.plots import bars
from vflens.experiments.sweeps.pool import Cell, Rows
from vflens.numerics.assignment import in_order_of
from vflens.numerics.measures.intervals import spread
from vflens.types import Array, ColumnInfo, Document, Facts
from vflens.words import counted

WITHIN = 0.319  # standard deviations within which TabLeak counts a number as found
#: What the abstracts of the paper print; its tables could not be read.
PRINTED = {
    "32": "10 points over the strongest baseline (first version, abstract)",
    "128": "> 90 % of large subsets (ICML 2023, abstract)",
}
GUESSES = ("blind", "uniform", "other rows")
_QUICK = {"starts": 4, "steps": 60, "polishing_steps": 10}
_SEEDS = 5


class InvertedBatch(NamedTuple):
    """Rows of ``data`` in a batch, the widths of hidden layers, and whether a free descent runs too."""

    data: str
    batch: int
    hidden: Sequence[int]
    free: bool = False


SETTINGS = (
    *(InvertedBatch("adult", batch, (100, 100)) for batch in (16, 32, 128)),
    InvertedBatch("bank", 8, (32,), free=True),
)


@dataclass(frozen=True, eq=False)
class Encoded:
    """A table with one column for each category: ``x`` (N, D) in [0, 1], ``columns``, ``labels`` (N,).

    ``features`` are the places of each column of the table itself: one, or those of its categories.
    """

    x: Array
    columns: tuple[ColumnInfo, ...]
    features: tuple[slice, ...]
    labels: Array

    def found(self, values: Array, truth: Array) -> float:
        """The share of cells of ``truth`` (n, D) that ``values`` find: of categories the largest, of numbers
        within :data:`WITHIN` standard deviations.
        """
        near = [self._near(at, values[:, at], truth[:, at]) for at in self.features]
        return float(np.mean(near))

    def _near(self, at: slice, values: Array, truth: Array) -> Array:
        if values.shape[1] > 1:
            same: Array = values.argmax(axis=1) == truth.argmax(axis=1)
            return same
        near: Array = np.abs(values - truth)[:, 0] <= WITHIN * self.x[:, at].std()
        return near

    def commonest(self) -> Array:
        """The blind guess (D,): the mean of numbers, and of categories, of which the largest counts."""
        mean: Array = self.x.mean(axis=0)
        return mean

    def guesses(self, places: Array, rng: np.random.Generator) -> dict[str, Array]:
        """By name (n, D): what an adversary guesses of the rows at ``places`` (n,) without their gradient."""
        others = rng.choice(np.setdiff1d(np.arange(len(self.x)), places), len(places), replace=False)
        blind = np.tile(self.commonest(), (len(places), 1))
        return {"blind": blind, "uniform": self.uniform(len(places), rng), "other rows": self.x[others]}

    def uniform(self, n: int, rng: np.random.Generator) -> Array:
        """``n`` rows (n, D) of uniform numbers and categories."""
        rows = rng.random((n, len(self.columns)))
        for at in self.features:
            if at.stop - at.start > 1:
                rows[:, at] = np.eye(at.stop - at.start)[rng.integers(at.stop - at.start, size=n)]
        return rows


@lru_cache(maxsize=2)
def encoded(name: str) -> Encoded:
    """The data set ``name``; a column of more than two codes has a column for each.

    Raises:
        DataError: its file is absent.
    """
    table = dataset(name, {}).prepared()
    assert table.labels is not None
    parts = [_encoded(column, table.features[:, j]) for j, column in enumerate(table.columns)]
    widths = [x.shape[1] for _, x in parts]
    ends = [*accumulate(widths, initial=0)]
    columns = tuple(c for of, _ in parts for c in of)
    features = tuple(slice(start, start + width) for start, width in zip(ends, widths, strict=False))
    return Encoded(np.hstack([x for _, x in parts]), columns, features, table.labels)


def _encoded(column: ColumnInfo, values: Array) -> tuple[list[ColumnInfo], Array]:
    if column.alphabet is None or len(column.alphabet) < 3:
        return [ColumnInfo(column.name, 0.0, 1.0)], ((values - values.min()) / np.ptp(values))[:, None]
    letters = column.alphabet
    one_hot = [ColumnInfo(f"{column.name}={i}", 0.0, 1.0, alphabet=(0.0, 1.0)) for i in range(len(letters))]
    return one_hot, np.equal(values[:, None], letters).astype(np.float64)


def batch_rows(setting: InvertedBatch, seed: int, descents: Facts) -> Rows:
    """Invert one batch: a row of shares found and squared errors, of each attack and guess."""
    import torch

    from vflens.attacks.dlg import DeepLeakage
    from vflens.attacks.helpers.gradients.inverted import BatchShape
    from vflens.attacks.helpers.gradients.table_rows import TableRows, one_hot_groups
    from vflens.attacks.helpers.gradients.tabular import Descents, TableBatch, tabular_inversion
    from vflens.attacks.tabular_inversion import TabularInversion
    from vflens.plugins.steps import silent

    data, rng = encoded(setting.data), np.random.default_rng((seed, setting.batch))
    places = rng.choice(len(data.x), setting.batch, replace=False)
    x, labels = data.x[places], data.labels[places]
    classes = int(data.labels.max()) + 1
    torch.manual_seed(seed)
    model = _network((x.shape[1], *setting.hidden, classes))
    gradient = _gradient(model, x, labels)
    chosen = TabularInversion(**descents).model_dump(include=set(Descents.__annotations__))
    table = TableBatch(TableRows(one_hot_groups(data.columns)), x.shape[1], labels, classes)
    found = {"tabular_inversion": tabular_inversion(model, gradient, table, Descents(**chosen), rng).x}
    if setting.free:
        shape = BatchShape(setting.batch, data.columns, classes)
        many = {name: g[None] for name, g in gradient.items()}
        free = DeepLeakage().inverted(model, many, shape, rng, labels=labels[None], progress=silent)
        found["dlg, free"] = np.clip(free.x[0], 0, 1)
    found |= data.guesses(places, np.random.default_rng((seed, setting.batch, 1)))
    found = {name: in_order_of(x, values[None], labels)[0] for name, values in found.items()}
    return [
        {
            **{"data": setting.data, "batch": setting.batch, "seed": seed, "attack": name},
            **{"found": data.found(values, x), "mse": float(((values - x) ** 2).mean())},
        }
        for name, values in found.items()
    ]


def _network(widths: Sequence[int]):  # type: ignore[no-untyped-def]  # torch is imported when it is needed
    """A new network of linear layers and ReLU, in float64."""
    from torch import float64, nn

    layers = [nn.Linear(a, b, dtype=float64) for a, b in pairwise(widths)]
    return nn.Sequential(*[part for layer in layers for part in (layer, nn.ReLU())][:-1])


def _gradient(model, x: Array, labels: Array) -> dict[str, Array]:  # type: ignore[no-untyped-def]
    """By name, of the mean cross-entropy of the batch ``x`` (n, d)."""
    import torch

    loss = torch.nn.functional.cross_entropy(model(torch.tensor(x)), torch.tensor(labels))
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    names = [name for name, _ in model.named_parameters()]
    return {name: g.numpy() for name, g in zip(names, gradients, strict=True)}


def inverted_batches(options: FigureOptions) -> Drawing:
    """All settings, the first seed of each before the second."""
    descents = _QUICK if options.quick else {}
    seeds = options.seeds or (1 if options.quick else _SEEDS)
    absent = _absent()
    settings = [s for s in SETTINGS if s.data not in absent and (not options.quick or s.batch < 32)]
    cells = [
        Cell({**options.key, "of": [*setting[:2]], "number": number}, (setting, number, descents))
        for number in range(options.seed, options.seed + seeds)
        for setting in settings
    ]
    rows = [row for part in options.pool.run(batch_rows, cells) for row in part]
    left = len(cells) - options.pool.finished(cells)
    notes = [f"{left} of {counted(len(cells), 'batch')} are not computed yet."] if left else []
    notes += absent.values()
    shown = bars(
        "Cells found",
        [f"{s.data}, {s.batch}" for s in settings],
        "share of cells",
        {
            attack: [float(np.mean(_of(rows, s, attack, "found") or [0.0])) for s in settings]
            for attack in ("tabular_inversion", *GUESSES)
        },
    )
    return Drawing(rows, [shown], _LEAD, [*notes, _PAPER], tables=[_found(rows, settings), _errors(rows)])


def _absent() -> dict[str, str]:
    """The data sets that cannot be read here, and why."""
    reasons = {}
    for name in dict.fromkeys(s.data for s in SETTINGS):
        try:
            encoded(name)
        except DataError as error:
            reasons[name] = f"{name} is left out: {error}"
    return reasons


_LEAD = (
    "The batch whose gradient at a fresh network comes nearest to the observed one. Rows are brought into "
    "the order in which they are nearest, those of guesses too. A category counts as found where it is the "
    "largest, a number within .319 standard deviations, as TabLeak counts. Blind: the mean, and the "
    "commonest category, of the whole table; uniform: numbers and categories drawn alike; other rows: as "
    "many of the same table. Means ± half the width of the 95 % interval over batches."
)
_PAPER = (
    "TabLeak has Adult with fnlwgt, standardised numbers and an ensemble of 30; here Adult has 13 columns in "
    "[0, 1]. The paper's tables could not be read: its abstracts are quoted."
)


def _of(rows: Iterable[Document], setting: InvertedBatch, attack: str, figure: str) -> list[float]:
    place = (setting.data, setting.batch, attack)
    return [r[figure] for r in rows if (r["data"], r["batch"], r["attack"]) == place]


def _found(rows: Rows, settings: Sequence[InvertedBatch]) -> TextTable:
    lines = []
    for setting in settings:
        ours = _of(rows, setting, "tabular_inversion", "found")
        others = (_of(rows, setting, guess, "found") for guess in GUESSES)
        printed = PRINTED.get(str(setting.batch), "–") if setting.data == "adult" else "–"
        name = f"{setting.data}, {counted(setting.batch, 'row')}"
        lines.append([name, str(len(ours)), printed, spread(ours), *map(spread, others)])
    heads = ["batch", "batches", "published", "ours", *GUESSES]
    return TextTable("Share of cells found", heads, lines)


def _errors(rows: Rows) -> TextTable:
    places = dict.fromkeys((r["data"], r["batch"], r["attack"]) for r in rows)
    lines = []
    for data, batch, attack in places:
        errors = _of(rows, InvertedBatch(data, batch, ()), attack, "mse")
        lines.append([f"{data}, {counted(batch, 'row')}", attack, str(len(errors)), spread(errors)])
    return TextTable("Mean squared error per column", ["batch", "attack", "batches", "error"], lines)


PAGES = (
    Page(
        "tableak",
        "Batches of a table from their gradient (TabLeak)",
        inverted_batches,
        "tableak",
        several=True,
    ),
)
