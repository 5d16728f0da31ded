"""Now and then train on wrong labels: an honest gradient turns against the others, a hijacked one does not.

Erdoğan et al., 2022 (WPES), SplitGuard: §4, with the settings of the authors' code.
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from pydantic import Field

from vflens.plugins.defense import Context, Defense
from vflens.randomness import generator
from vflens.types import Array, Phase, Role

_FAKE, _KINDS = 0, 3  # fake batches, and two halves of the others


class SplitGuard(Defense):
    """A client's fake batch has other labels. A passive party has no labels: in its fake batch each row has
    the embedding of another one. It learns nothing from the gradients of a fake batch.

    The score is near 1 as long as fake batches are answered differently, and low where they make no
    difference. An alarm is the mean of the last ``window`` scores below ``threshold``.
    """

    unclaimed: ClassVar[str] = (
        "it finds a server that breaks the protocol, and withholds nothing from one that keeps it"
    )

    share: float = Field(0.1, gt=0, lt=1, description="share of batches that are fake")
    start: int = Field(20, ge=0, le=1_000_000_000, description="steps before the first fake batch")
    window: int = Field(10, ge=1, le=10_000, description="scores whose mean is compared with the threshold")
    threshold: float = Field(0.9, gt=0, lt=1, description="mean score below which an alarm is raised")
    steepness: float = Field(5.0, gt=0, le=1_000, description="factor α in the score's sigmoid")
    power: float = Field(2.0, gt=0, le=1_000, description="exponent β of the score's sigmoid")

    def on_embedding(self, h: Array, ctx: Context) -> Array:
        """At a passive party: ``h`` (n, w), of a fake batch with its rows moved on."""
        return np.roll(h, self._shift(ctx, len(h)), axis=0) if self._is_fake(ctx) else h

    def on_batch_labels(self, y: Array, ctx: Context) -> Array:
        """At a client: ``y`` (n, k), of a fake batch with its classes moved on."""
        return np.roll(y, self._shift(ctx, y.shape[1]), axis=1) if self._is_fake(ctx) else y

    def on_received(self, g: Array, ctx: Context) -> Array:
        """``g`` (n, w); zeros for a fake batch."""
        if ctx.exchange.step < self.start or not len(g):
            return g
        kind = _FAKE if self._is_fake(ctx) else 1 + int(self._draws(ctx, "half").integers(2))
        _remember(ctx.memory, kind, self._first_layer(g, ctx))
        if kind != _FAKE:
            return g
        if ctx.memory["counts"].all():
            self._judge(ctx)
        return np.zeros_like(g)

    def _judge(self, ctx: Context) -> None:
        """Score what is remembered."""
        found = score(ctx.memory, self.steepness, self.power)
        scores = np.append(ctx.memory.get("scores", np.zeros(0)), found)[-self.window :]
        ctx.memory["scores"] = scores
        ctx.suspect(found, alarm=bool(len(scores) == self.window and scores.mean() < self.threshold))

    def _first_layer(self, g: Array, ctx: Context) -> Array:
        """The gradient (d·w,) of the weights of a bottom model that is one layer; of others a stand-in."""
        assert ctx.owner.columns is not None
        x = ctx.owner.columns[ctx.rows]
        if self._is_fake(ctx) and ctx.owner.role is Role.PASSIVE:
            x = np.roll(x, self._shift(ctx, len(x)), axis=0)
        return (x.T @ g).ravel()

    def _is_fake(self, ctx: Context) -> bool:
        trained = ctx.exchange.phase is Phase.TRAIN and ctx.exchange.step >= self.start
        return trained and self._draws(ctx, "fake").random() < self.share

    def _shift(self, ctx: Context, n: int) -> int:
        return int(self._draws(ctx, "shift").integers(1, max(n, 2)))

    def _draws(self, ctx: Context, what: str) -> np.random.Generator:
        """The same in all hooks of one step, which nobody else can foresee."""
        return generator(ctx.key(what, str(ctx.exchange.step)))


def _remember(memory: dict[str, Array], kind: int, vector: Array) -> None:
    """Add ``vector`` (m,) and its norm to the sums of its ``kind``."""
    m = len(vector)
    empty = {"sums": np.zeros((_KINDS, m)), "norms": np.zeros(_KINDS), "counts": np.zeros(_KINDS, np.int64)}
    for name, more in (("sums", vector), ("norms", np.linalg.norm(vector)), ("counts", 1)):
        memory[name] = memory.get(name, empty[name]).copy()
        memory[name][kind] += more


def score(sums: Mapping[str, Array], steepness: float, power: float) -> float:
    """σ(α S)^β of gradients' ``sums`` (3, m), ``norms`` (3,) and ``counts`` (3,): fake ones, two halves of
    the others. S = (θ(F, R)·d(F, R) − θ(R₁, R₂)·d(R₁, R₂)) / (d(F, R) + d(R₁, R₂)), θ the angle of means in
    radians, d the difference of mean norms, R the mean of both halves (equation 6 and the authors' code).
    """
    means, norms = sums["sums"] / sums["counts"][:, None], sums["norms"] / sums["counts"]
    others, usual = means[1:].mean(axis=0), norms[1:].mean()
    apart, noise = abs(norms[_FAKE] - usual), abs(norms[1] - norms[2])
    turned = _angle(means[_FAKE], others) * apart - _angle(means[1], means[2]) * noise
    S = turned / max(apart + noise, np.finfo(np.float64).tiny)
    return float((1 / (1 + np.exp(-steepness * S))) ** power)


def _angle(a: Array, b: Array) -> float:
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(np.arccos(np.clip(a @ b / lengths, -1, 1))) if lengths else 0.0
