"""What many messages in a row have in common is made once."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


def once_in_a_row(made: Callable[[A], B]) -> Callable[[A], B]:
    """``made`` of an argument that does not change; of one equal to that of the call before, its result."""
    last: tuple[A, B] | None = None

    @wraps(made)
    def again(argument: A) -> B:
        nonlocal last
        kept = last
        if kept is None or not (kept[0] is argument or kept[0] == argument):
            kept = last = argument, made(argument)
        return kept[1]

    return again
