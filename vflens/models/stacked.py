"""Linear models of one size that train side by side: a step of all of them is one of stacked arrays.

Each gets the bits that it gets alone, where there are a power of two of them: dividing by that rounds
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from vflens.array import Array
from vflens.models.settings import Training
from vflens.models.softmax_regression import batches
from vflens.numerics.optimizer import OPTIMIZERS

#: What becomes of all models' partial logits (M, m, k) of a batch, of rows int32 (m,) each.
Sees = Callable[[Array, Sequence[Array]], Array]
MOST = 16  # models side by side: more hardly save anything


@dataclass(eq=False)
class Course:
    """One model to train on ``rows`` int32 of both parties' columns ``x`` (n, d) and ``targets`` (n, k).

    The logits of the first ``own`` columns, None: all, are what others see.
    """

    x: Array
    targets: Array
    rows: Array
    rng: np.random.Generator
    own: int | None = None

    def steps(self, training: Training) -> Iterator[Array]:
        """The rows of each batch, in order."""
        for _ in range(training.epochs):
            yield from batches(self.rows, training.batch_size, self.rng)


def side_by_side(count: int, most: int = MOST) -> Iterator[range]:
    """How ``count`` models are cut, ``most`` together: into ranges of a power of two."""
    first = 0
    while first < count:
        size = 1 << (max(1, min(MOST, most, count - first)).bit_length() - 1)
        yield range(first, first + size)
        first += size


def fit(
    courses: Sequence[Course],
    training: Training,
    loss_of: Callable[[Array, Array], tuple[float, Array]],
    sees: Sees = lambda z, rows: z,
) -> tuple[Array, Array]:
    """The weights (M, k, d) and biases (M, k) of M ``courses`` of one size, each on as many rows."""
    (first, *_), count = courses, len(courses)
    (d, k), own = (first.x.shape[1], first.targets.shape[1]), first.own
    models, of_model = _Stack(count, d, k, training), np.arange(count)[:, None]
    whole, targets = (np.stack(of) for of in zip(*((c.x, c.targets) for c in courses), strict=True))
    for rows in zip(*(course.steps(training) for course in courses), strict=True):
        at = of_model, np.stack(rows)
        x, y = whole[at], targets[at].reshape(-1, k)
        z = sees(models.logits(x, slice(own)) + models.bias[:, None], rows)
        if own is not None:
            z = z + models.logits(x, slice(own, None))
        gradient = loss_of(z.reshape(-1, k), y)[1].reshape(z.shape)
        models.learn(x, gradient * count)  # the mean was one over all models
    return models.weight, models.bias


class _Stack:
    """The parameters of ``count`` models: :class:`vflens.models.softmax_regression.LinearBlock`, stacked."""

    def __init__(self, count: int, features: int, classes: int, training: Training) -> None:
        size = classes * features
        self._theta = np.zeros((count, size + classes))
        self._gradient = np.empty_like(self._theta)
        self.weight, self.bias = self._parts(self._theta, size, features)
        self._weight_gradient, self._bias_gradient = self._parts(self._gradient, size, features)
        self._penalised = slice(None if training.penalise_bias else size)
        self._penalty = 2 * training.l2
        self._optimizer = OPTIMIZERS[training.optimizer](self._theta.size, training.learning_rate)

    def logits(self, x: Array, of: slice) -> Array:
        """The part (M, m, k) of the logits of ``x`` (M, m, d) that the columns ``of`` give."""
        found: Array = x[:, :, of] @ self.weight[:, :, of].swapaxes(1, 2)
        return found

    def learn(self, x: Array, gradient: Array) -> None:
        """One step of all, from inputs (M, m, d) and gradients of mean losses in the logits (M, m, k)."""
        np.matmul(gradient.swapaxes(1, 2), x, out=self._weight_gradient)
        np.matmul(np.ones(x.shape[1]), gradient, out=self._bias_gradient)
        of = self._penalised
        self._gradient[:, of] += self._penalty * self._theta[:, of]
        self._optimizer.update(self._theta.ravel(), self._gradient.ravel())

    @staticmethod
    def _parts(flat: Array, size: int, features: int) -> tuple[Array, Array]:
        return flat[:, :size].reshape(len(flat), -1, features), flat[:, size:]
