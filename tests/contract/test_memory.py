"""Every linear attack in bounded chunks: 10⁶ rows of 36 columns and five equations stay under 1 GiB, by what
a row more costs.

``benchmarks/test_memory.py`` measures the processes themselves.
"""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from thinned import thinned

from vflens import attacks
from vflens.plugins.attack import LinearAttack
from vflens.registry import ATTACKS
from vflens.types import Moments

#: More than any chunk of rows, so that the difference of the two peaks is what the number of rows costs.
FEW, MANY, ROWS = 17_000, 34_000, 1_000_000

#: 1 GiB without b and an interpreter with NumPy and SciPy.
ROOM = 2**30 - 40e6 - 130e6

#: Narrower systems on which the attacks that search really do.
SEARCHES: list[tuple[str, int, dict[str, Any]]] = [
    ("chebyshev", 7, {}),
    ("finite_alphabet", 10, {"alphabets": ((0.0, 1.0),) * 10}),
]
WIDE = [
    (name, 36, {"steps": 3} if name == "gia" else {})
    for name in ATTACKS.names()
    if issubclass(ATTACKS.get(name), LinearAttack)
]


@pytest.mark.parametrize(("name", "d", "params"), thinned(WIDE + SEARCHES, 3))
def test_a_million_rows_stay_under_a_gibibyte(name: str, d: int, params: dict[str, Any]) -> None:
    few, many = (_peak(name, d, n, params) for n in (FEW, MANY))
    assert many + (ROWS - MANY) * (many - few) / (MANY - FEW) < ROOM


def _peak(name: str, d: int, n: int, params: dict[str, Any]) -> int:
    """The most bytes that NumPy and Python held beyond A and b."""
    rng = np.random.default_rng(0)
    A, x = np.diff(rng.normal(size=(6, d)), axis=0), rng.random((n, d))
    b = (np.round(x) if "alphabets" in params else x) @ A.T
    del x
    tracemalloc.start()
    try:
        attacks.estimate(name, A, b, rng=rng, moments=Moments(np.full(d, 0.5), np.eye(d) / 12), **params)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
