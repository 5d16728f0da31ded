"""Gates for tests: one line each to open one, to release through it, and to close all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from vflens.member.gate import ReleaseGate
from vflens.member.step_log import StepLog
from vflens.plugins.chain import DefenseChain
from vflens.plugins.defense import Context, Defense
from vflens.types import Array, Exchange, Owner, Phase, Point

SCORES = np.log(np.random.default_rng(0).dirichlet(np.ones(3), 40))


class Noise(Defense):
    """Adds standard normal noise to everything it meets."""

    def on_embedding(self, h: Array, ctx: Context) -> Array:
        return h + ctx.stream().normal(size=h.shape)

    def on_gradient(self, g: Array, ctx: Context) -> Array:
        return g + ctx.stream().normal(size=g.shape)

    def on_parameters(self, w: Mapping[str, Array], ctx: Context) -> Mapping[str, Array]:
        return {name: a + ctx.stream(name).normal(size=a.shape) for name, a in w.items()}


def chain_of(*defenses: Defense, secret: bytes = b"secret") -> DefenseChain:
    """The defences under the names of their classes."""
    named = [(type(d).__name__, d) for d in defenses]
    return DefenseChain(lambda: Owner("party"), named, secret)


_OPEN: list[ReleaseGate] = []


def open_gate(folder: Path, *defenses: Defense, secret: bytes = b"secret") -> ReleaseGate:
    steps = StepLog(folder / "steps.bin")
    _OPEN.append(ReleaseGate("party", chain_of(*defenses, secret=secret), folder, steps))
    return _OPEN[-1]


def train_step(step: int, run: str = "run") -> Exchange:
    return Exchange(run, Phase.TRAIN, 0, step)


def predict_step(step: int, version: int = 1) -> Exchange:
    return Exchange("run", Phase.PREDICT, version, step)


def positions(*rows: int) -> Array:
    return np.array(rows, np.int32)


def scores_of(gate: ReleaseGate, step: int, *rows: int, version: int = 1) -> Array:
    """The released scores of ``rows``, asked in prediction ``step``."""
    released = gate.release_rows(
        Point.SCORES, predict_step(step, version), positions(*rows), lambda r: SCORES[r]
    )
    assert released.rows.tolist() == list(rows)
    return released.tensor("scores")


def close_gates() -> None:
    """Close every gate that was opened here."""
    while _OPEN:
        _OPEN.pop().close()
