"""Grids whose cells spread over places: ``make test`` runs some of them, ``make facts`` the rest."""

from __future__ import annotations

from collections.abc import Iterable

import pytest


def thinned(cells: Iterable[tuple[object, ...]], every: int = 2) -> list[object]:
    """All cells; those between every ``every``-th are slow facts."""
    return [_cell(cell, fact=bool(number % every)) for number, cell in enumerate(cells)]


def first(cells: Iterable[object], kept: int = 1) -> list[object]:
    """All cells, tuples or single values; those after the first ``kept``, alike in kind, are slow facts."""
    return [
        _cell(cell if isinstance(cell, tuple) else (cell,), fact=number >= kept)
        for number, cell in enumerate(cells)
    ]


def _cell(values: tuple[object, ...], *, fact: bool) -> object:
    return pytest.param(*values, marks=[pytest.mark.facts] if fact else [])
