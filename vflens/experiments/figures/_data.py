"""The data sets of the LR papers' figures; each is dealt and trained once per process."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from vflens.datasets._resolve import dataset
from vflens.errors import DataError
from vflens.experiments.figures.central import AUTHORS, Model, train
from vflens.models.settings import Training
from vflens.tables.scaling import Scaler
from vflens.tables.table import TRAIN
from vflens.types import Array

RVG_SETS = ("bank", "robot", "satellite", "synthetic")
_AUTHORS = frozenset(RVG_SETS)
#: As in RVG's text: 50,000 rows of 10 features; their script draws 20,000.
_SYNTHETIC = {"rows": 50_000, "features": 10, "classes": 2, "informative": 3}
_L2 = {"synthetic": 1e-7}
_DEFENDED_L2 = {"bank": 1e-3, "robot": 1e-3, "satellite": 2e-4, "synthetic": 1e-4}
QUICK_EPOCHS = 100


@dataclass(frozen=True, eq=False)
class Dealt:
    """A data set in [0, 1]: ``x`` (n, d_t), ``labels`` (n,), and its training and prediction rows."""

    name: str
    columns: tuple[str, ...]
    x: Array
    labels: Array
    classes: int
    train_rows: Array
    predict_rows: Array

    def predictions(self, count: int, seed: int) -> Array:
        """``count`` prediction rows (all, if there are fewer), drawn without repetition."""
        rows = np.random.default_rng((seed, 1)).permutation(self.predict_rows)
        drawn: Array = self.x[rows[:count]]
        return drawn


@lru_cache(maxsize=8)
def dealt(name: str, seed: int, recipe: str | None = None) -> Dealt:
    """``name`` by ``recipe`` (None: the authors', else the paper's), split 80/20 unless it has a split.

    Raises:
        DataError: the file is absent.
    """
    options = dict(_SYNTHETIC, seed=seed) if name == "synthetic" else {}
    recipe = recipe or ("authors" if name in _AUTHORS else "paper")
    table = dataset(name, {**options, "recipe": recipe}).prepared()
    assert table.labels is not None
    if table.split is None:
        order = np.random.default_rng((seed, 0)).permutation(len(table.ids))
        cut = round(0.8 * len(order))
        parts = order[:cut], order[cut:]
    else:
        parts = np.flatnonzero(table.split == TRAIN), np.flatnonzero(table.split != TRAIN)
    names, x = tuple(c.name for c in table.columns), table.features
    if recipe == "clean":
        x, _ = Scaler.fit(table.columns, x[parts[0]]).transform(x)
    train, predict = parts
    classes = len(table.class_names)
    return Dealt(name, names, x, table.labels, classes=classes, train_rows=train, predict_rows=predict)


@lru_cache(maxsize=16)
def trained(name: str, seed: int, quick: bool, defended: bool = False, recipe: str | None = None) -> Model:
    """The model of ``name`` on all columns, by the authors' schedule; ``defended``: as in their figures of
    defences.
    """
    d = dealt(name, seed, recipe)
    training = defended_training(name, quick) if defended else _plain_training(name, quick)
    rows = d.train_rows
    return train(
        d.x[rows], d.labels[rows], d.classes, training, epoch_rng(seed), authors_schedule=not defended
    )


def epoch_rng(seed: int) -> Callable[[int], np.random.Generator]:
    """The generator of an epoch's batches."""
    return lambda epoch: np.random.default_rng((seed, 2, epoch))


def _plain_training(name: str, quick: bool) -> Training:
    epochs = QUICK_EPOCHS if quick else AUTHORS.epochs
    return AUTHORS.model_copy(update={"l2": _L2.get(name, AUTHORS.l2), "epochs": epochs})


def defended_training(name: str, quick: bool) -> Training:
    """L2 on weights only, so that x ↦ 1−x maps the optimum exactly; 1,000 epochs of their 500 to 3,000."""
    return Training(
        epochs=QUICK_EPOCHS if quick else 1000,
        batch_size=1000,
        learning_rate=0.05,
        l2=_DEFENDED_L2[name],
        penalise_bias=False,
    )


def available(names: Sequence[str], seed: int) -> tuple[list[Dealt], list[str]]:
    """The present data sets, and a note on each absent one."""
    here, notes = [], []
    for name in names:
        try:
            here.append(dealt(name, seed))
        except DataError as error:
            notes.append(f"{name} is left out: {error}")
    return here, notes


def sizes(width: int, quick: bool) -> list[int]:
    """Window sizes 1 … ``width``; five of them if ``quick``."""
    everything = list(range(1, width + 1))
    return everything if not quick else sorted({*np.linspace(1, width, 5).round().astype(int).tolist()})


def windows(width: int, d: int, quick: bool) -> Array:
    """Columns (w, d) of all cyclic windows of ``d`` adjacent features of ``width``; if ``quick``, four."""
    starts = (
        np.arange(width) if not quick else np.unique(np.linspace(0, width, 4, endpoint=False).astype(int))
    )
    columns: Array = (starts[:, None] + np.arange(d)) % width
    return columns
