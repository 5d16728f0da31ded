"""Checks of every received payload, before any computation with it."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from vflens.errors import ProtocolError
from vflens.types import Array, Exchange, Phase, Point, Released, sealed

#: This protocol trains one model. A row is released once per version. So an unknown version is refused: it
#: would draw new noise of a defence.
MODEL_VERSION = 1
_FLOAT64 = np.dtype(np.float64)


def check_exchange(exchange: Exchange, run: str, phase: Phase) -> None:
    """Refuse an exchange of another run or phase, or of an unknown model version.

    Raises:
        ProtocolError: names both.
    """
    if exchange.run != run:
        raise ProtocolError(
            f"an exchange of run {exchange.run!r} reached run {run!r}: send it to its own run"
        )
    if exchange.phase is not phase:
        raise ProtocolError(f"an exchange of phase {exchange.phase.value!r} instead of {phase.value!r}")
    if phase is not Phase.TRAIN:
        check_version(exchange.round)


def check_version(version: int) -> None:
    """Refuse an unknown model version.

    Raises:
        ProtocolError: names it.
    """
    if version != MODEL_VERSION:
        raise ProtocolError(f"model version {version} does not exist: ask for version {MODEL_VERSION}")


def check_origin(released: Released, sender: str, point: Point) -> None:
    """Refuse a payload of another kind, or of another party than ``sender``.

    Raises:
        ProtocolError: names both.
    """
    if released.point is not point or released.sender != sender:
        raise ProtocolError(
            f"{released.point.value} of {released.sender!r} came instead of {point.value} of {sender!r}"
        )


@cache
def _most_squared(dtype: np.dtype[Any]) -> float:
    """Largest Σx² of a message, (2¹⁰²⁴)^⅔ for float64: sums of such x over rows can be squared, as an
    optimiser does.
    """
    most: float = float(np.finfo(dtype).max) ** (2 / 3)
    return most


def finite(
    released: Released,
    name: str,
    shape: tuple[int, ...],
    dtype: np.dtype[Any] = _FLOAT64,
    *,
    sent: Mapping[str, Array] | None = None,
    most: float = np.inf,
) -> Array:
    """The tensor ``name`` of ``released``, if :func:`only` takes it, all its numbers are finite and none is
    huge, nor beyond ±``most``.

    A refusal says how large the numbers were that its sender was ``sent`` before, if any: an honest party's
    own ones overflow where another's were too large.

    Raises:
        KnowledgeError, ProtocolError: as there; or it holds NaN, infinite or huge numbers.
    """
    value = only(released, name, shape, dtype)
    if not is_moderate(value) or np.abs(value).max(initial=0) > most:
        raise ProtocolError(
            f"{name} of {released.sender!r} holds NaN, infinite or huge numbers in step "
            f"{released.exchange.step}{after(sent)}: check its table, its defences and the learning rate"
        )
    return value


def after(sent: Mapping[str, Array] | None) -> str:
    """How large the numbers were that a party was ``sent`` before its own were wrong, in words."""
    largest = max((float(np.abs(numbers).max(initial=0)) for numbers in (sent or {}).values()), default=None)
    return "" if largest is None else f", after numbers up to {largest:.3g} that it was sent"


def is_moderate(value: Array) -> bool:
    """Whether all of ``value`` are finite numbers and none is huge."""
    # Σx² is small only if every x is a number and none is huge; a dot product is quicker than looking at
    # each (docs/performance.md, small choices).
    return bool(np.vdot(value, value) < _most_squared(value.dtype))


def only(released: Released, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """The tensor ``name`` of ``released``, if it is the only one and has ``shape`` and ``dtype``.

    Raises:
        KnowledgeError: it was withheld.
        ProtocolError: it is missing or not the only tensor, or has another dtype or shape.
    """
    value = released.tensor(name)
    if len(released.tensors or ()) > 1:  # extra tensors would enter the transcript
        raise ProtocolError(
            f"{released.point.value} of {released.sender!r} carries the tensors "
            f"{sorted(released.tensors or ())}: expected {name!r} alone"
        )
    if value.dtype != dtype or value.shape != shape:
        raise ProtocolError(
            f"{name} of {released.sender!r} has shape {value.shape} {value.dtype}: expected {shape} {dtype}"
        )
    return value


def finite_tensors(
    released: Released, like: Mapping[str, Array], *, sent: Mapping[str, Array] | None = None
) -> None:
    """Refuse ``released`` unless its tensors have the names, shapes and dtypes of ``like``, and all numbers
    are finite and none is huge; ``sent`` as in :func:`finite`.

    Raises:
        KnowledgeError: they were withheld.
        ProtocolError: naming the tensor.
    """
    for name, due in like.items():
        single = replace(released, tensors={name: released.tensor(name)})
        finite(single, name, due.shape, due.dtype, sent=sent)
    odd = sorted(set(released.tensors or ()) - set(like))
    if odd:  # extra tensors would enter the transcript
        raise ProtocolError(
            f"{released.point.value} of {released.sender!r} carries the tensor {odd[0]!r}: the model has none"
        )


def part(released: Released, rows: Array) -> Released:
    """``released`` with ``rows`` only, which it holds in the same order."""
    if len(rows) == len(released.rows):
        return released
    kept = np.isin(released.rows, rows)
    tensors = {name: sealed(values[kept]) for name, values in (released.tensors or {}).items()}
    return replace(released, rows=rows, tensors=tensors)
