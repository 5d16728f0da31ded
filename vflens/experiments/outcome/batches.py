"""How many rows of a party's own table a server of clients takes from one round, against the rows of a round.

A fresh network of two hidden layers, one local step, the update in the precision of a client: what
``exact_inversion`` reads of it (:mod:`vflens.numerics.gradients.exact_batch`). In NumPy alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise, takewhile
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.special import softmax

from vflens.array import Array
from vflens.errors import ConfigError
from vflens.numerics.gradients.exact_batch import EXACT, exact_batch
from vflens.words import counted

Layers: TypeAlias = Sequence[tuple[Array, Array]]  # W (out, in) and c (out,), a ReLU between two of them
HIDDEN = (100, 100)
SIZES = (1, 2, 4, 8, 12, 16, 24, 32)
_BATCHES = 5  # of each size
_RATE = 0.05  # the default of a training


class Round(NamedTuple):
    """``found`` of ``rows`` rows, in rounds of ``batch`` rows each."""

    batch: int
    rows: int
    found: int


def fresh(widths: Sequence[int], rng: np.random.Generator) -> Layers:
    """Layers of these ``widths``, as torch begins: uniform within 1/√inputs."""
    return [
        (rng.uniform(-1, 1, (b, a)) / np.sqrt(a), rng.uniform(-1, 1, b) / np.sqrt(a))
        for a, b in pairwise(widths)
    ]


def slopes(x: Array, layers: Layers) -> Array:
    """The gradient (n, k, m) of the loss of each row of ``x`` (n, d), as each of k classes, in the first
    layer's output.
    """
    inner, h = [], x
    for weight, bias in layers:
        z = h @ weight.T + bias
        inner.append(z)
        h = np.maximum(z, 0)
    found: Array = softmax(z, axis=1)[:, None] - np.eye(z.shape[1])
    for (weight, _), before in zip(layers[:0:-1], inner[-2::-1], strict=True):
        found = (found @ weight) * (before > 0)[:, None]
    return found


def update_gradient(x: Array, labels: Array, layers: Layers, rate: float, precision: str) -> list[Array]:
    """∇W and ∇c of the first of ``layers``, from an update of one step of ``rate`` in this ``precision``."""
    signals = slopes(x, layers)[np.arange(len(x)), labels] / len(x)
    found = []
    for start, gradient in zip(layers[0], (signals.T @ x, signals.sum(axis=0)), strict=True):
        sent = start.astype(precision)
        update = (start - rate * gradient).astype(precision) - sent
        found.append(-update.astype(float) / rate)
    return found


def inverted(
    x: Array,
    labels: Array,
    layers: Layers,
    rng: np.random.Generator,
    *,
    rate: float = _RATE,
    precision: str = "float32",
) -> int:
    """How many rows of the batch ``x`` (n, d) with ``labels`` (n,) the update gives away."""
    weight, bias = update_gradient(x, labels, layers, rate, precision)
    last = layers[-1][0]
    behind = last[1] - last[0] if len(layers) == len(last) == 2 else None
    known = partial(slopes, layers=layers)
    found = exact_batch((weight, bias), layers[0], len(x), rng, slopes=known, behind=behind)
    if found is None:
        return 0
    off = np.abs(found.x[:, None] - x).max(axis=2).min(axis=0)
    return int((off < EXACT).sum())


def rounds(x: Array, classes: int, seed: int) -> Iterator[Round]:
    """What rounds of each of :data:`SIZES` rows of ``x`` (N, d) in [0, 1] send; two sizes of which none is
    found end it. Labels are drawn: the inversion does not need them.

    Raises:
        ConfigError: there are fewer different rows than the largest round has.
    """
    different, empty = len(np.unique(x, axis=0)), 0
    if different < SIZES[-1]:
        raise ConfigError(
            f"--batches tries rounds of up to {SIZES[-1]} different rows, too many for the "
            f"{different} of this table: leave --batches out"
        )
    for batch in SIZES:
        if empty == 2:
            return
        rng, found = np.random.default_rng((seed, batch)), 0
        for _ in range(_BATCHES):
            places = rng.choice(len(x), batch, replace=False)
            layers = fresh((x.shape[1], *HIDDEN, classes), rng)
            found += inverted(x[places], rng.integers(0, classes, batch), layers, rng)
        empty = 0 if found else empty + 1
        yield Round(batch, _BATCHES * batch, found)


def sent(found: Sequence[Round]) -> str:
    """The sentence about rounds in ascending order: "Rounds of 8 rows send 8 rows; from 24 on none here was
    found."
    """
    some = [one for one in found if one.found]
    if not some:
        return f"Of rounds of {found[0].batch} to {counted(found[-1].batch, 'row')} none here was found."
    whole = list(takewhile(lambda one: one.found == one.rows, found))
    parts = [_sends(one) for one in dict.fromkeys([*whole[-1:], some[-1]])]
    beyond = [one for one in found if one.batch > some[-1].batch]
    end = f"from {beyond[0].batch} on none here was found" if beyond else "larger ones were not tried"
    first, *rest = [*parts, end]
    return "; ".join([f"Rounds of {first}", *rest]) + "."


def _sends(one: Round) -> str:
    mean = one.batch * one.found / one.rows
    rows = counted(one.batch, "row")
    return f"{rows} send {rows}" if one.found == one.rows else f"{rows} send {mean:.2g} on average"
