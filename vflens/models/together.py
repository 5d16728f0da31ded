"""Many models of a party's own columns, trained at once: bit for bit what one after the other gives."""

import numpy as np

from vflens.models.alone import train_alone
from vflens.models.families.softmax_regression import SoftmaxRegression
from vflens.models.family import ModelFamily
from vflens.models.part import Site
from vflens.models.softmax_regression import as_targets
from vflens.numerics.optimizer import OPTIMIZERS
from vflens.types import Array


def scores_of_own_rows(
    model: ModelFamily, site: Site, table: Array, labels: Array, rows: Array, *, rng: np.random.Generator
) -> Array:
    """The scores (p, m, k) that p models give to the rows int32 (p, m) of ``table`` that each is trained on.

    See :func:`vflens.models.alone.train_alone`. Softmax regressions are trained together, networks apart.
    """
    if not isinstance(model, SoftmaxRegression):
        read = table.__getitem__
        return np.stack([train_alone(model, site, read, labels, own, rng=rng)(own) for own in rows])
    epochs, size = range(site.training.epochs), site.training.batch_size
    orders = np.array([[rng.permutation(own) for _ in epochs] for own in rows])
    targets, stack = as_targets(labels, site.classes), _Stack(site, table.shape[1], len(rows))
    for epoch in epochs:
        for first in range(0, rows.shape[1], size):
            batch = orders[:, epoch, first : first + size]
            stack.learn(table[batch], targets[batch])
    z = stack.logits(table[rows])
    z -= z.max(axis=1, keepdims=True)
    return _turned(z - np.log(np.exp(z).sum(axis=1, keepdims=True)))


class _Stack:
    """p blocks as :class:`vflens.models.softmax_regression.LinearBlock` is one: arrays begin with the model,
    and classes come before rows.
    """

    def __init__(self, site: Site, features: int, models: int) -> None:
        training, size = site.training, site.classes * features
        self._theta = np.zeros((models, size + (site.classes if site.holds_bias else 0)))
        self._gradient = np.empty_like(self._theta)
        self._weight, self._weight_gradient = (
            flat[:, :size].reshape(models, site.classes, features) for flat in (self._theta, self._gradient)
        )
        self._bias, self._bias_gradient = self._theta[:, size:], self._gradient[:, size:]
        self._penalty, self._penalised = 2 * training.l2, None if training.penalise_bias else size
        self._optimizer = OPTIMIZERS[training.optimizer](self._theta.size, training.learning_rate)

    def logits(self, x: Array) -> Array:
        """Logits (p, k, n) of the inputs ``x`` (p, n, d)."""
        z = x @ self._weight.swapaxes(1, 2)
        return _turned(z + self._bias[:, None] if self._bias.size else z)

    def learn(self, x: Array, y: Array) -> None:
        """One step of each from the mean loss of its inputs (p, n, d) and soft labels (p, n, k)."""
        z, y = self.logits(x), _turned(y)
        gradient = np.exp(z - z.max(axis=1, keepdims=True))
        gradient *= y.sum(axis=1, keepdims=True) / gradient.sum(axis=1, keepdims=True)
        gradient -= y
        gradient /= z.shape[2]
        rows_first = _turned(gradient)
        np.matmul(rows_first.swapaxes(1, 2), x, out=self._weight_gradient)
        if self._bias.size:
            np.matmul(np.ones(x.shape[1]), rows_first, out=self._bias_gradient)
        penalised = slice(self._penalised)
        self._gradient[:, penalised] += self._penalty * self._theta[:, penalised]
        self._optimizer.update(self._theta.reshape(-1), self._gradient.reshape(-1))


def _turned(z: Array) -> Array:
    """``z`` (p, a, b) as (p, b, a), contiguous: how an array lies decides how numpy sums."""
    return np.ascontiguousarray(z.swapaxes(1, 2))
