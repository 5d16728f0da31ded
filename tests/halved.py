"""Grids whose cells spread over places: ``make test`` runs half of them, ``make facts`` the rest."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from _pytest.mark import ParameterSet


def halved(cells: Iterable[tuple[object, ...]]) -> list[ParameterSet]:
    """All cells; every second one is a slow fact."""
    return [
        pytest.param(*cell, marks=[pytest.mark.facts] if number % 2 else [])
        for number, cell in enumerate(cells)
    ]
