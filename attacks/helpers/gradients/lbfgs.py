"""L-BFGS on many problems side by side, each with steps and a memory of its own.

Directions are those of Nocedal and Wright, 2006, algorithm 7.4; steps fulfil the weak Wolfe conditions, found
by bisection (Lewis and Overton, 2013, algorithm 2.6), which asks for no more than values and slopes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import torch
from torch import Tensor

#: Values (a,) and gradients (a, v) at points (a, v) of the problems of these numbers (a,).
Objective: TypeAlias = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
#: Is called with the number of steps done and the values (a,) of the problems that go on.
Progress: TypeAlias = Callable[[int, Tensor], None]

_DECREASE, _CURVATURE, _TRIALS = 1e-4, 0.9, 12  # more trials at a kink cost twice the time and end alike


def minimised(
    objective: Objective,
    start: Tensor,
    *,
    steps: int,
    memory: int = 20,
    enough: float = 0.0,
    progress: Progress | None = None,
) -> tuple[Tensor, Tensor]:
    """Where each descent from ``start`` (m, v) ends (m, v), and the values there (m,).

    A problem ends after ``steps`` steps, at a value of at most ``enough``, or where no step along its
    steepest descent decreases it. No value is above that of its start.
    """
    state = _Running.at(objective, start)
    ends, values = start.clone(), state.f.clone()
    for step in range(steps):
        _move(objective, state, memory)
        ends[state.which], values[state.which] = state.x, state.f
        state.keep((state.f > enough) & ~state.stuck)
        if progress is not None:
            progress(step + 1, state.f)
        if not len(state.which):
            break
    return ends, values


@dataclass(eq=False)
class _Running:
    """The problems that go on: their numbers, points, values and gradients; which found no step along their
    steepest descent; and of each remembered step s, y and 1/sᵀy, which is 0 where it tells nothing.
    """

    which: Tensor
    x: Tensor
    f: Tensor
    g: Tensor
    stuck: Tensor
    remembered: list[tuple[Tensor, Tensor, Tensor]] = field(default_factory=list)

    @classmethod
    def at(cls, objective: Objective, start: Tensor) -> _Running:
        which = torch.arange(len(start), device=start.device)
        return cls(which, start.clone(), *objective(start, which), torch.zeros_like(which, dtype=torch.bool))

    def keep(self, going: Tensor) -> None:
        """Leave the other problems out."""
        if going.all():
            return
        for name in ("which", "x", "f", "g", "stuck"):
            setattr(self, name, getattr(self, name)[going])
        self.remembered = [(s[going], y[going], r[going]) for s, y, r in self.remembered]

    def direction(self) -> Tensor:
        """−H g, H the memory's estimate of the inverse Hessian; −g/‖g‖ without memory."""
        q, scale = self.g.clone(), 1 / self.g.norm(dim=1).clamp_min(1e-300)
        weights = []
        for s, y, r in reversed(self.remembered):
            weights.append(r * (s * q).sum(dim=1))
            q -= weights[-1][:, None] * y
        for _, y, r in self.remembered:  # the last one that tells something
            scale = torch.where(r > 0, 1 / (r * (y**2).sum(dim=1)).clamp_min(1e-300), scale)
        q *= scale[:, None]
        for (s, y, r), weight in zip(self.remembered, reversed(weights), strict=True):
            q += (weight - r * (y * q).sum(dim=1))[:, None] * s
        return -q

    def informed(self) -> Tensor:
        """Which problems have a memory (a,)."""
        known = torch.zeros_like(self.stuck)
        for _, _, r in self.remembered:
            known |= r > 0
        return known

    def remember(self, x: Tensor, g: Tensor, memory: int) -> None:
        """A step to ``x`` with gradient ``g``."""
        s, y = x - self.x, g - self.g
        along = (s * y).sum(dim=1)
        tells = along > 1e-10 * (y**2).sum(dim=1).clamp_min(1e-300)
        self.remembered.append((s, y, torch.where(tells, 1 / along, 0.0)))
        del self.remembered[:-memory]


def _move(objective: Objective, state: _Running, memory: int) -> None:
    """One step of each problem; one without a step forgets, and is stuck if it had nothing to forget."""
    x, f, g, moved = _searched(objective, state, state.direction())
    state.stuck = ~moved & ~state.informed()
    state.remember(x, g, memory)
    for _, _, r in state.remembered:
        r[~moved] = 0
    state.x, state.f, state.g = x, f, g


def _searched(objective: Objective, state: _Running, d: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Points along ``d`` that fulfil the conditions, or the last that fulfils the first; values, gradients,
    and for which problems there is one.
    """
    x, f, g = state.x.clone(), state.f.clone(), state.g.clone()
    slope = (state.g * d).sum(dim=1)
    low, high = torch.zeros_like(f), torch.full_like(f, torch.inf)
    t, moved, open_ = torch.ones_like(f), torch.zeros_like(state.stuck), slope < 0
    for _ in range(_TRIALS):
        at = open_.nonzero().squeeze(1)
        if not len(at):
            break
        points = state.x[at] + t[at, None] * d[at]
        values, gradients = objective(points, state.which[at])
        decreased = values <= state.f[at] + _DECREASE * t[at] * slope[at]
        flat = (gradients * d[at]).sum(dim=1) >= _CURVATURE * slope[at]
        good = at[decreased]
        x[good], f[good], g[good] = points[decreased], values[decreased], gradients[decreased]
        moved[good], open_[at[decreased & flat]] = True, False
        low[good], high[at[~decreased]] = t[good], t[at[~decreased]]
        t[at] = torch.where(high[at].isinf(), 2 * t[at], (low[at] + high[at]) / 2)
    return x, f, g, moved
