"""Released payloads and tensors as protobuf messages, and back; everything that arrives is checked here.

Tensors travel as dtype + shape + raw little-endian bytes; decoding makes a read-only view of the
message's bytes, no copy.
"""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from vflens.errors import ProtocolError
from vflens.protos import vfl_pb2 as pb
from vflens.types import DTYPES, MAX_DIMENSIONS, Array, Exchange, Phase, Point, Released
from vflens.words import counted

MAX_ELEMENTS = 2**31

_PHASE_OUT: Mapping[Phase, Any] = {p: pb.Phase.Value(p.name) for p in Phase}
_PHASE_IN: Mapping[Any, Phase] = {number: phase for phase, number in _PHASE_OUT.items()}
#: Metrics are of recordings: no party of ours sends them.
_POINT_OUT: Mapping[Point, Any] = {p: pb.Point.Value(p.name) for p in Point if p is not Point.METRICS}
_POINT_IN: Mapping[Any, Point] = {number: point for point, number in _POINT_OUT.items()}


def encode_tensor(name: str, array: Array) -> pb.Tensor:
    """``array`` as a message; it must be contiguous and little-endian, as the gate seals it."""
    return pb.Tensor(name=name, dtype=array.dtype.str, shape=array.shape, data=array.tobytes())


def decode_tensor(message: pb.Tensor) -> Array:
    """The read-only array in ``message``.

    Raises:
        ProtocolError: an unknown dtype, an impossible shape, or bytes that do not fit them.
    """
    if len(message.shape) > MAX_DIMENSIONS:
        raise ProtocolError(
            f"tensor {message.name!r} has {len(message.shape)} dimensions: expected at most {MAX_DIMENSIONS}"
        )
    name, dtype, shape, data = message.name, message.dtype, tuple(message.shape), message.data
    due = _size(name, dtype, shape)
    if len(data) != due:
        raise ProtocolError(
            f"tensor {name!r} of shape {shape} {dtype} has {counted(len(data), 'byte')}: expected {due}"
        )
    if dtype == "|b1" and max(data, default=0) > 1:
        raise ProtocolError(f"tensor {name!r} holds a byte that is no truth value: send 0 or 1")
    return np.frombuffer(data, dtype).reshape(shape)


@lru_cache(maxsize=256)  # training sends the same few shapes again and again
def _size(name: str, dtype: str, shape: tuple[int, ...]) -> int:
    """The bytes of a tensor."""
    if dtype not in DTYPES:
        raise ProtocolError(f"tensor {name!r} has dtype {dtype!r}: send one of {', '.join(sorted(DTYPES))}")
    if min(shape, default=0) < 0:
        raise ProtocolError(f"tensor {name!r} has shape {shape}: no dimension is negative")
    elements = math.prod(shape)
    # An empty side does not make the others harmless: NumPy cannot hold a shape of (0, 2⁶²).
    if (elements or math.prod(n for n in shape if n)) > MAX_ELEMENTS:
        raise ProtocolError(f"tensor {name!r} has shape {shape}: no message holds so much")
    return elements * DTYPES[dtype]


def encode_rows(rows: Array) -> bytes:
    """int32 row positions as bytes."""
    return rows.astype("<i4", copy=False).tobytes()


def decode_rows(data: bytes) -> Array:
    """int32 row positions.

    Raises:
        ProtocolError: not a whole number of positions.
    """
    if len(data) % 4:
        raise ProtocolError(f"rows of {counted(len(data), 'byte')}: expected 4 bytes a row")
    return np.frombuffer(data, "<i4")


def encode_exchange(exchange: Exchange) -> pb.Exchange:
    """``exchange`` as a message."""
    return pb.Exchange(
        run=exchange.run, phase=_PHASE_OUT[exchange.phase], round=exchange.round, step=exchange.step
    )


def decode_exchange(message: pb.Exchange) -> Exchange:
    """The exchange in ``message``.

    Raises:
        ProtocolError: an unknown phase, or a negative round or step.
    """
    phase = _PHASE_IN.get(message.phase)
    if phase is None or message.round < 0 or message.step < 0:
        raise ProtocolError(
            f"exchange with phase {message.phase}, round {message.round}, step {message.step}: name a phase, "
            "count from 0"
        )
    return Exchange(message.run, phase, message.round, message.step)


def encode_released(released: Released) -> pb.Released:
    """``released`` as a message."""
    tensors = released.tensors or {}
    return pb.Released(
        sender=released.sender,
        exchange=encode_exchange(released.exchange),
        point=_POINT_OUT[released.point],
        rows=encode_rows(released.rows),
        tensors=[encode_tensor(name, array) for name, array in tensors.items()],
        withheld=released.tensors is None,
    )


def decode_released(message: pb.Released) -> Released:
    """The payload in ``message``.

    Raises:
        ProtocolError: an unknown point, a tensor named twice or malformed, NaN.
    """
    point = _POINT_IN.get(message.point)
    if point is None:
        raise ProtocolError(
            f"payload from {message.sender!r} of unknown kind {message.point}: use a peer of the same version"
        )
    tensors: dict[str, Array] = {}
    for tensor in message.tensors:
        if tensor.name in tensors:
            raise ProtocolError(f"payload from {message.sender!r} names tensor {tensor.name!r} twice")
        tensors[tensor.name] = _without_nan(tensor.name, decode_tensor(tensor))
    rows = decode_rows(message.rows)
    return Released(
        message.sender,
        decode_exchange(message.exchange),
        point,
        rows,
        tensors=None if message.withheld else tensors,
    )


def _without_nan(name: str, array: Array) -> Array:
    # Σx² is NaN exactly when an element is; a dot product is quicker (docs/performance.md, small choices).
    if array.dtype.kind == "f" and math.isnan(np.vdot(array, array)):
        raise ProtocolError(f"tensor {name!r} holds NaN: send finite numbers (−inf only among scores)")
    return array
