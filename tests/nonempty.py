"""A loop over nothing asserts nothing: what a test loops over has something in it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def nonempty(found: Iterable[T]) -> list[T]:
    """All of ``found``, and a failure where there is nothing."""
    items = list(found)
    assert items, "nothing is there to look at"
    return items
