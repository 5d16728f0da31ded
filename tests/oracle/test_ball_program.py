"""Quadratics and their ratios on a ball: the largest value, against many random points."""

from __future__ import annotations

import numpy as np
import pytest

from vflens.numerics.estimators.ball_program import largest_on_ball, largest_ratio
from vflens.types import Array


def _ball(d: int, radius: float, rng: np.random.Generator, n: int = 20_000) -> Array:
    """Points of the ball, half of them on its surface."""
    u = rng.normal(size=(n, d))
    u *= radius / np.linalg.norm(u, axis=1, keepdims=True)
    u[::2] *= rng.random((len(u[::2]), 1))
    return u


@pytest.mark.parametrize("case", ["any", "concave", "hard", "zero", "linear"])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_maximum_on_a_ball_is_global(d: int, case: str) -> None:
    for seed in range(15):
        rng = np.random.default_rng(seed)
        B, g, radius = rng.normal(size=(d, d)), rng.normal(size=d), rng.random() + 0.1
        B = -B @ B.T if case == "concave" else (B + B.T) * (case not in ("zero", "linear"))
        if case == "hard":  # nothing of g along the top direction
            top = np.linalg.eigh(B)[1][:, -1]
            g = g - top * (top @ g)
        g = g * (case != "zero")
        y = largest_on_ball(B, g, radius)
        points = _ball(d, radius, rng)
        values = np.einsum("ni,ij,nj->n", points, B, points) + 2 * points @ g
        assert np.linalg.norm(y) <= radius * (1 + 1e-9)
        assert values.max() <= y @ B @ y + 2 * g @ y + 1e-9


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_largest_ratio_is_global(d: int) -> None:
    for seed in range(15):
        rng = np.random.default_rng(seed)
        B, g, c = rng.normal(size=(d, d)), rng.normal(size=d), rng.normal()
        B, C = B + B.T, np.diag(rng.random(d) + 0.5)
        center = rng.normal(size=d) + 2 * np.eye(d)[0]
        radius = 0.8 * float(np.linalg.norm(center))
        x = largest_ratio(B, g, c, C, center=center, radius=radius)
        points = center + _ball(d, radius, rng)

        def ratio(p: Array, B: Array = B, g: Array = g, c: float = c, C: Array = C) -> Array:
            top = np.einsum("ni,ij,nj->n", p, B, p) + 2 * p @ g + c
            return np.asarray(top / np.einsum("ni,ij,nj->n", p, C, p))

        assert np.linalg.norm(x - center) <= radius * (1 + 1e-9)
        assert ratio(points).max() <= ratio(x[None])[0] + 1e-9
