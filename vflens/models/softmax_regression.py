"""Softmax regression cut vertically: each party's block of logits, and the loss at the active party.

z = Σ_parties X Wᵀ + b, c = softmax(z) (RVG §III). The penalty l2·Σθ² over weights **and** bias has the
gradient 2·l2·θ, the convention of the authors' scripts; ``penalise_bias = false`` spares the bias.
"""

from collections.abc import Mapping

import numpy as np

from vflens.errors import StorageError
from vflens.models.part import LossGradient
from vflens.models.settings import Training
from vflens.numerics.optimizer import OPTIMIZERS
from vflens.types import Array, Exchange
from vflens.words import counted

_SLACK = 1e-6  # of sums of rounded probabilities


class LinearBlock:
    """One party's weights (k, d), and the bias (k,) if it holds it; starts at zero. float64."""

    def __init__(self, features: int, classes: int, *, bias: bool, training: Training) -> None:
        size = classes * features
        self._theta = np.zeros(size + (classes if bias else 0))
        self._gradient = np.empty_like(self._theta)
        self._penalty = 2 * training.l2
        penalised = len(self._theta) if training.penalise_bias else size
        self._penalised, self._penalised_gradient = self._theta[:penalised], self._gradient[:penalised]
        self._training = training
        self._optimizer = OPTIMIZERS[training.optimizer](len(self._theta), training.learning_rate)
        self.weight = self._theta[:size].reshape(classes, features)
        self.bias = self._theta[size:] if bias else None
        self._weight_gradient = self._gradient[:size].reshape(classes, features)
        self._bias_gradient, self._ones = self._gradient[size:], np.ones(0)

    def forward(self, x: Array, exchange: Exchange | None = None) -> Array:
        """Partial logits (n, k) of ``x`` (n, d); the exchange matters to networks only."""
        z: Array = x @ self.weight.T
        return z if self.bias is None else z + self.bias

    def loss_gradient(
        self, received: Array, x: Array, y: Array, exchange: Exchange | None = None
    ) -> LossGradient:
        """:meth:`loss_of` the others' logits ``received`` (n, k) and those of ``x`` (n, d)."""
        loss, gradient = self.loss_of(received + self.forward(x), y)
        return LossGradient(loss, gradient, lambda: self.learn(x, gradient))

    def loss_of(self, z: Array, y: Array) -> tuple[float, Array]:
        """The mean loss of the logits ``z`` (n, k), and its gradient in them."""
        return loss_gradient(z, y)

    def embeddings(self, x: Array, exchange: Exchange | None = None) -> Array:
        """The logits (n, k): softmax regression embeds in nothing else."""
        return self.forward(x)

    def row_gradients(
        self, received: Array, x: Array, y: Array, exchange: Exchange | None = None
    ) -> dict[str, Array]:
        """See :meth:`vflens.models.part.Showing.row_gradients`: D xᵀ and D."""
        mean = self.loss_of(received + self.forward(x), y)[1]
        each = mean * len(x)
        named = {"weight": each[:, :, None] * x[:, None, :]}
        return named if self.bias is None else {**named, "bias": each}

    def log_scores(self, received: Array, x: Array, exchange: Exchange | None = None) -> Array:
        """Log-probabilities (n, k) of the others' logits ``received`` (n, k) and those of ``x`` (n, d)."""
        return log_softmax(received + self.forward(x))

    def learn(self, x: Array, gradient: Array, exchange: Exchange | None = None) -> None:
        """One optimiser step, from the batch's inputs (n, d) and the gradient of its mean loss in the logits
        (n, k).
        """
        np.matmul(gradient.T, x, out=self._weight_gradient)
        if self.bias is not None:
            # The column sums; sum(axis=0) is slower on a narrow array: docs/performance.md, small choices.
            if len(self._ones) != len(gradient):
                self._ones = np.ones(len(gradient))
            np.matmul(self._ones, gradient, out=self._bias_gradient)
        self._penalised_gradient += self._penalty * self._penalised
        self._optimizer.update(self._theta, self._gradient)

    def slow_down(self, factor: float) -> None:
        """Divide the learning rate of the steps to come by ``factor``."""
        self._optimizer.rate /= factor

    def parameters(self) -> dict[str, Array]:
        """Copies of "weight" and, where it is held, "bias"."""
        named = {"weight": self.weight.copy()}
        return named if self.bias is None else {**named, "bias": self.bias.copy()}

    def take(self, parameters: Mapping[str, Array]) -> None:
        """See :meth:`vflens.models.part.Taking.take`."""
        self.weight[:] = parameters["weight"]
        if self.bias is not None:
            self.bias[:] = parameters["bias"]
        self._optimizer = OPTIMIZERS[self._training.optimizer](len(self._theta), self._training.learning_rate)

    def state(self) -> dict[str, Array]:
        """Parameters and optimiser state, for :meth:`load`."""
        return {"theta": self._theta.copy(), **self._optimizer.state()}

    def load(self, state: Mapping[str, Array]) -> None:
        """Take up :meth:`state`.

        Raises:
            StorageError: it is the state of a block of another size.
        """
        if state["theta"].shape != self._theta.shape:
            raise StorageError(
                f"the checkpoint has {counted(state['theta'].size, 'parameter')}, this party's block "
                f"{self._theta.size}: resume with the same table"
            )
        self._theta[:] = state["theta"]
        self._optimizer.load(state)


def log_softmax(z: Array) -> Array:
    """Log-probabilities (n, k) of logits (n, k), shifted so that nothing overflows."""
    shifted = np.array(z.T, order="C")  # a copy, classes first: see loss_gradient
    shifted -= shifted.max(axis=0)
    shifted -= np.log(np.exp(shifted).sum(axis=0))
    return np.ascontiguousarray(shifted.T)


def are_log_probabilities(scores: Array) -> bool:
    """Whether every row of ``scores`` (n, k) holds logarithms of probabilities: −∞ is one of them.

    They sum to 1, or to what rounding each to one decimal, the coarsest defence, makes of that: at least .1,
    at most 2 or k/10, as each at most doubles or becomes .1.
    """
    if not (scores <= 0).all():
        return False
    total = np.exp(scores).sum(axis=1)
    return bool(((total > 0.1 - _SLACK) & (total < max(2, scores.shape[1] / 10) + _SLACK)).all())


def loss_gradient(z: Array, y: Array) -> tuple[float, Array]:
    """Mean cross-entropy of logits and soft labels (n, k), and its gradient (c Σy − y)/n float64 (n, k)."""
    # Classes lead inside: reducing a short last axis is slower (docs/performance.md, small choices).
    z = np.array(z.T, np.float64, order="C")  # a copy in any case: it is changed below
    y = np.ascontiguousarray(y.T)
    z -= z.max(axis=0)
    gradient = np.exp(z)
    total, mass = gradient.sum(axis=0), y.sum(axis=0)
    loss = float(np.log(total).dot(mass) - np.vdot(y, z)) / z.shape[1]
    gradient *= mass / total
    gradient -= y
    gradient /= z.shape[1]
    return loss, np.ascontiguousarray(gradient.T)


def one_hot(labels: Array, classes: int) -> Array:
    """float64 (n, k) indicator rows."""
    return np.eye(classes)[labels]


def as_targets(labels: Array, classes: int) -> Array:
    """What a model learns of ``labels`` (n,): indicator rows (n, k) of classes, of numbers themselves
    (n, 1).
    """
    return labels[:, None] if labels.dtype.kind == "f" else one_hot(labels, classes)


def batches(rows: Array, size: int, rng: np.random.Generator) -> list[Array]:
    """``rows`` in random order, cut into batches of ``size`` (the last may be smaller)."""
    shuffled = rng.permutation(rows)
    return [shuffled[i : i + size] for i in range(0, len(shuffled), size)]
