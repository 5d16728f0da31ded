"""Learning a network from granted rows: all of them at once by L-BFGS, or batches of them by Adam."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Literal

import numpy as np
import torch
from pydantic import BaseModel, Field
from torch import Tensor, nn

from vflens.plugins.steps import Steps, silent
from vflens.types import Array, Progress

Loss = Callable[[Array], Tensor]  # of the granted rows at these places


class Learner(BaseModel):
    """How an attack learns."""

    learner: Literal["lbfgs", "adam"] = Field(
        "lbfgs", description="L-BFGS on all granted rows at once; or Adam on batches, for thousands of rows"
    )
    learning_steps: int = Field(
        200, ge=1, le=1_000_000, description="steps of L-BFGS, or passes of Adam over the granted rows"
    )
    learning_rate: float = Field(
        0.003, gt=0, allow_inf_nan=False, description="adam: its rate, which falls to 0"
    )
    learning_batch: int = Field(64, ge=1, le=1_000_000, description="adam: rows in a batch")

    def fit(
        self,
        model: nn.Module,
        loss: Loss,
        rows: int,
        rng: np.random.Generator,
        progress: Progress = silent,
    ) -> None:
        """Minimise ``loss`` over the parameters of ``model``, which is then as it gives predictions."""
        model.eval()
        if self.learner == "lbfgs":
            step = Steps(progress, "learning", self.learning_steps)
            _by_lbfgs(model, lambda: loss(np.arange(rows)), self.learning_steps, step)
        else:
            steps = -(-rows // self.learning_batch) * self.learning_steps
            passes = batches(rows, self.learning_batch, self.learning_steps, rng)
            step = Steps(progress, "learning", steps)
            by_adam(model, map(loss, passes), steps, self.learning_rate, step)


def batches(rows: int, size: int, passes: int, rng: np.random.Generator) -> Iterable[Array]:
    """The places of every batch of ``size`` of ``rows`` rows, in ``passes`` orders."""
    return islice(endless(rows, size, rng), passes * -(-rows // size))


def endless(rows: int, size: int, rng: np.random.Generator) -> Iterator[Array]:
    """The same in orders without end."""
    while True:
        order = rng.permutation(rows)
        yield from (order[i : i + size] for i in range(0, rows, size))


def by_adam(
    model: nn.Module, losses: Iterable[Tensor], steps: int, rate: float, step: Callable[[], None]
) -> None:
    """One step of Adam for each of ``losses``, ``steps`` in number; its rate falls to 0 along a cosine.
    ``step`` counts.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for loss in losses:
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        schedule.step()
        step()


def descend(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    """One step of ``optimizer``; no other parameter gets a gradient."""
    optimizer.zero_grad()
    torch.autograd.backward(loss, inputs=[p for group in optimizer.param_groups for p in group["params"]])
    optimizer.step()


def _by_lbfgs(model: nn.Module, loss: Callable[[], Tensor], steps: int, step: Callable[[], None]) -> None:
    """``step`` counts evaluations: a step of L-BFGS takes one or more."""
    optimizer = torch.optim.LBFGS(
        model.parameters(),
        max_iter=steps,
        tolerance_grad=1e-12,
        tolerance_change=1e-14,
        line_search_fn="strong_wolfe",
    )

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = loss()
        torch.autograd.backward(value)
        step()
        return value

    optimizer.step(closure)  # type: ignore[no-untyped-call]
