"""Grids whose cells spread over places: ``make test`` runs some of them, ``make facts`` the rest."""

from __future__ import annotations

from collections.abc import Iterable

import pytest


def thinned(cells: Iterable[tuple[object, ...]], every: int = 2) -> list[object]:
    """All cells; those between every ``every``-th are slow facts."""
    return [
        pytest.param(*cell, marks=[pytest.mark.facts] if number % every else [])
        for number, cell in enumerate(cells)
    ]
