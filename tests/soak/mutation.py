"""Messages that are nearly right: a valid one with one to three faults in its fields or its bytes."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from random import Random
from typing import Any

from google.protobuf.message import Message

_NUMBERS = (-1, 0, 1, 2, 7, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63))
_FLOATS = (math.nan, math.inf, -math.inf, 1e308, -1.0, 0.0, 5e-324)
_TEXTS = ("", "x" * 5_000, "\x1b[2J", "a\nb", "<f2", "|b1", "é")


def mutated(rng: Random, message: Message, words: Sequence[str]) -> bytes:
    """The bytes of ``message`` after one to three faults; ``words``: names of the run, and others."""
    faulty = type(message)()
    faulty.CopyFrom(message)
    for _ in range(rng.choice((0, 1, 1, 2))):
        _spoil(rng, faulty, (*words, *_TEXTS))
    data = faulty.SerializeToString()
    return rng.choice(BYTE_FAULTS)(rng, data) if data == message.SerializeToString() else data


def _spoil(rng: Random, message: Message, words: Sequence[str]) -> None:
    """Change one field, at whatever depth, or exchange the values of two."""
    found = list(_fields(message))
    if not found:
        return
    holder, name = rng.choice(found)
    value, draw = getattr(holder, name), rng.random()
    with suppress(ValueError, TypeError):  # a number that the field cannot hold, values of two kinds
        if draw < 0.1:
            holder.ClearField(name)
        elif isinstance(value, Message):
            value.MergeFrom(value)  # its lists come twice
        elif hasattr(value, "extend"):
            _spoil_list(rng, value)
        elif draw < 0.3:
            _exchange(holder, name, *rng.choice(found))
        else:
            setattr(holder, name, _other(rng, value, words))


def _fields(message: Message) -> Iterator[tuple[Any, str]]:
    """Every field that is set, with the message that holds it."""
    for field, value in message.ListFields():
        yield message, field.name
        for inner in [value] if isinstance(value, Message) else value if hasattr(value, "extend") else ():
            if isinstance(inner, Message):
                yield from _fields(inner)


def _exchange(holder: Any, name: str, other: Any, another: str) -> None:
    first, second = getattr(holder, name), getattr(other, another)
    setattr(holder, name, second)
    setattr(other, another, first)


def _spoil_list(rng: Random, items: Any) -> None:
    at = rng.randrange(len(items))
    match rng.randrange(3):
        case 0:
            items.extend([items[at]])
        case 1:
            del items[at]
        case _:
            kept = list(items)[::-1]
            del items[:]
            items.extend(kept)


def _other(rng: Random, value: Any, words: Sequence[str]) -> Any:
    match value:
        case bool():
            return not value
        case int():
            return rng.choice((*_NUMBERS, value + 1, value - 1, 2 * value))
        case float():
            return rng.choice((*_FLOATS, -value, 2 * value))
        case str():
            return rng.choice((*words, value + "x", value[::-1]))
        case _:
            return rng.choice((*BYTE_FAULTS, _number))(rng, value)


def _number(rng: Random, data: bytes) -> bytes:
    """One of its numbers is NaN, infinite or huge."""
    at = 8 * rng.randrange(len(data) // 8 + 1)
    return data[:at] + struct.pack("<d", rng.choice(_FLOATS)) + data[at + 8 :]


def _flip(rng: Random, data: bytes) -> bytes:
    found = bytearray(data or b"\0")
    for _ in range(rng.randint(1, 3)):
        found[rng.randrange(len(found))] ^= 1 << rng.randrange(8)
    return bytes(found)


def _cut(rng: Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _dropped(rng: Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[at + rng.choice((1, 4, 8)) :]


def _repeated(rng: Random, data: bytes) -> bytes:
    at, size = rng.randrange(len(data) + 1), rng.choice((1, 4, 8, len(data)))
    return data[:at] + data[at : at + size] + data[at:]


def _swapped(rng: Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[at:] + data[:at]


def _unchanged(rng: Random, data: bytes) -> bytes:
    """A valid message at whatever moment."""
    return data


BYTE_FAULTS: Sequence[Callable[[Random, bytes], bytes]] = (
    _flip,
    _flip,
    _cut,
    _dropped,
    _repeated,
    _swapped,
    _unchanged,
)
