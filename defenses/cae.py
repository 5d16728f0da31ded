"""Confusional autoencoder: train on soft labels that name another class, decode the predictions.

A baseline of FedAdOb (§6), by Zou et al. (2022), "Defending batch-level label inference and replacement
attacks in vertical federated learning".
"""

from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np
from pydantic import Field
from scipy.special import entr, log_softmax, softmax

from vflens.errors import ConfigError
from vflens.plugins.defense import Context, Defense
from vflens.types import Array, Claim, Owner
from vflens.words import counted

_DRAWN = 200  # mixed labels beside the k pure ones: the decoder must bear predictions near a code
_RECONSTRUCTION = 10.0  # weight of the decoder's loss in the authors' code
_STEPS = 200
_WIDE = 25  # classes beyond which the hidden layers stay as wide


class CAE(Defense):
    """ỹ = softmax E(y), ŷ = D(ỹ), each of two linear layers with ReLU between; training sees ỹ only.

    They minimise 10·CE(ŷ, y) − confusion·CE(ỹ, y) − entropy·H(ỹ) over the k classes and 200 mixtures of them.
    CE(ỹ, y) takes the softmax of ỹ, as the authors' code does: without it the loss has no least value.
    """

    confusion: float = Field(1.0, ge=0, le=100, description="λ₁, weight of the distance between ỹ and y")
    entropy: float = Field(1.0, ge=0, le=100, description="λ₂, weight of the entropy of ỹ")

    def fit(self, owner: Owner, rng: np.random.Generator) -> Mapping[str, Array]:
        """``codes`` (k, k), ỹ of each class, and the decoder's layers.

        Raises:
            ConfigError: some class is not decoded.
        """
        from scipy.optimize import minimize  # slow to load

        k = owner.n_classes
        hidden = 16 * min(k, _WIDE)
        sizes = [k, hidden, k, hidden, k]
        labels = np.concatenate([np.eye(k), rng.dirichlet(np.full(k, 1 / k), _DRAWN)])
        start = [rng.normal(0, d**-0.5, (d + 1, w)) for d, w in pairwise(sizes)]
        shapes = [layer.shape for layer in start]
        found = minimize(
            self._loss(labels, shapes),
            np.concatenate([layer.ravel() for layer in start]),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": _STEPS},
        )
        layers = _layers(found.x, shapes)
        codes = softmax(_linear(_rectified(np.eye(k), layers[0]), layers[1]), axis=1)
        state = {"codes": codes, "hidden": layers[2], "output": layers[3]}
        if not np.array_equal(_decoded(codes, state).argmax(axis=1), np.arange(k)):
            raise ConfigError(
                f"cae at {owner.name!r}: entropy = {self.entropy:g} and confusion = {self.confusion:g} leave "
                f"codes of {counted(k, 'class')} that its decoder mixes up: choose smaller ones"
            )
        return state

    def on_labels(self, y: Array, ctx: Context) -> Array:
        """ỹ (n, k) of each row's class; of a soft row the mean of its classes' codes."""
        coded: Array = y @ ctx.state["codes"]
        return coded

    def on_outputs(self, z: Array, ctx: Context) -> Array:
        """Log-probabilities (n, k) of the classes that the model's scores stand for."""
        decoded: Array = log_softmax(_decoded(np.exp(z), ctx.state), axis=1)
        return decoded

    def claim(self, state: Mapping[str, Array]) -> Claim:
        """Every class is decoded; once fitted also the least entropy of a code."""
        if not state:
            return Claim(decodes=True)
        return Claim(decodes=True, label_entropy=float(entr(state["codes"]).sum(axis=1).min()))

    def _loss(self, y: Array, shapes: list[tuple[int, ...]]) -> Callable[[Array], tuple[float, Array]]:
        """The loss of all layers in one vector, and its gradient."""
        n = len(y)

        def loss(theta: Array) -> tuple[float, Array]:
            layers = _layers(theta, shapes)
            first = _rectified(y, layers[0])
            log_code = log_softmax(_linear(first, layers[1]), axis=1)
            code = np.exp(log_code)
            second = _rectified(code, layers[2])
            log_decoded = log_softmax(_linear(second, layers[3]), axis=1)
            log_confused = log_softmax(code, axis=1)
            value = -_RECONSTRUCTION * (y * log_decoded).sum()
            value += self.confusion * (y * log_confused).sum() + self.entropy * (code * log_code).sum()
            slope, output = _back(_RECONSTRUCTION * (np.exp(log_decoded) - y), second, layers[3])
            slope, hidden = _back(slope * (second > 0), code, layers[2])
            slope += self.entropy * (log_code + 1) - self.confusion * (np.exp(log_confused) - y)
            slope = code * (slope - (code * slope).sum(axis=1, keepdims=True))
            slope, coder = _back(slope, first, layers[1])
            _, entry = _back(slope * (first > 0), y, layers[0])
            gradient = np.concatenate([g.ravel() for g in (entry, coder, hidden, output)])
            return float(value) / n, gradient / n

        return loss


def _layers(theta: Array, shapes: list[tuple[int, ...]]) -> list[Array]:
    """Layers (inputs + 1, outputs), the last row the bias."""
    ends = np.cumsum([rows * columns for rows, columns in shapes])[:-1]
    return [part.reshape(shape) for part, shape in zip(np.split(theta, ends), shapes, strict=True)]


def _linear(x: Array, layer: Array) -> Array:
    product: Array = x @ layer[:-1] + layer[-1]
    return product


def _rectified(x: Array, layer: Array) -> Array:
    return np.maximum(_linear(x, layer), 0.0)


def _back(slope: Array, x: Array, layer: Array) -> tuple[Array, Array]:
    """Gradients in the inputs ``x`` and in ``layer`` from that in its outputs."""
    return slope @ layer[:-1].T, np.vstack([x.T @ slope, slope.sum(axis=0)])


def _decoded(codes: Array, state: Mapping[str, Array]) -> Array:
    """D before its softmax (n, k)."""
    return _linear(_rectified(codes, state["hidden"]), state["output"])
