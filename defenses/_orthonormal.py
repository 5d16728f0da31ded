"""Random orthonormal matrices of a party."""

from typing import Literal

import numpy as np

from vflens.types import Array

Drawn = Literal["negation", "random", "permutation", "signs"]


def drawn_matrix(kind: Drawn, d: int, rng: np.random.Generator) -> Array:
    """H (d, d), HᵀH = I: −I, uniform on O(d) (Mezzadri, 2007), a permutation of features, a sign for each."""
    if kind == "negation":
        return -np.eye(d)
    if kind == "permutation":
        return np.eye(d)[rng.permutation(d)]
    if kind == "signs":
        return np.diag(rng.choice([-1.0, 1.0], d))
    Q, R = np.linalg.qr(rng.normal(size=(d, d)))
    H: Array = Q * np.where(np.diag(R) < 0, -1.0, 1.0)
    return H
