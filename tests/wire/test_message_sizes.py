"""Messages of others: parts are counted, bytes held to a multiple of their size, before they are decoded."""

from __future__ import annotations

import tracemalloc
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st
from wirecases import ACTS, quick, tensor

from vflens.errors import ProtocolError
from vflens.protocol import acts
from vflens.protos import vfl_pb2 as pb
from vflens.services.servicer import decode_request
from vflens.wire import parts
from vflens.wire.messages import RPCS


def _nested(inner: bytes, number: int) -> bytes:
    """``inner`` as the value of field ``number``."""
    size = len(inner)
    groups = [size >> shift & 127 for shift in range(0, max(1, size.bit_length()), 7)]
    return bytes([number << 3 | 2, *(g | 128 for g in groups[:-1]), groups[-1]]) + inner


#: What makes much out of few bytes.
_HOSTILE: dict[str, tuple[type[acts.Act[Any]], bytes]] = {
    "statuses": (
        acts.Submission,
        pb.SubmissionRequest(guesses=[pb.Guess(values=tensor(), status=bytes(100_000))]).SerializeToString(),
    ),
    "guesses": (acts.Submission, b"\x2a\0" * 50_000),
    "tensors": (acts.Deliver, _nested(b"\x2a\0" * 50_000, 1)),
    "dimensions": (acts.Deliver, _nested(_nested(_nested(b"\1" * 100_000, 3), 5) + b"\x18\1", 1)),
    "columns": (acts.Prepare, _nested(_nested(b"\n\1a\x12\6active" + b"\x1a\0" * 70_000, 2), 1)),
}


@pytest.mark.parametrize("case", _HOSTILE)
def test_a_message_takes_a_small_multiple_of_its_size(case: str) -> None:
    act, data = _HOSTILE[case]
    decode(act, data[:0])  # what is made once is no matter of size
    tracemalloc.start()
    try:
        decode(act, data)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert taken < 4 * len(data)


def decode(act: type[acts.Act[Any]], data: bytes) -> None:
    with suppress(ProtocolError):
        decode_request(RPCS[act], data)


@pytest.mark.parametrize("case", sorted(_HOSTILE.keys() - {"statuses"}))
def test_a_message_of_too_many_parts_never_reaches_the_library(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the library builds of them is not Python's to count."""
    monkeypatch.setattr(parts, "MOST", 49_000)
    monkeypatch.setattr(parts, "_SMALL", 90_000)
    act, data = _HOSTILE[case]
    refusal = r"has more than 49000 parts: send fewer columns and values$"
    with pytest.raises(ProtocolError, match=refusal):
        decode_request(RPCS[act], data)
    with pytest.raises(ProtocolError, match=refusal):
        replace(RPCS[act], reply=RPCS[act].request).read_reply(data, "a")


@pytest.mark.parametrize("act", RPCS, ids=lambda a: a.__name__)
@given(data=st.data())
@quick
def test_parts_are_counted_as_the_library_finds_them(act: type[acts.Act[Any]], data: st.DataObject) -> None:
    message = RPCS[act].encode(data.draw(ACTS[act]))
    sent = message.SerializeToString()
    assert parts._parts(sent, 0, len(sent), message.DESCRIPTOR.fields_by_number, 0) == _counted(message)


def _counted(message: Message) -> int:
    count = 0
    for field, value in message.ListFields():
        if isinstance(value, str | bytes | int | float):
            count += 1
        elif isinstance(value, Message):
            count += 1 + _counted(value)
        elif field.message_type is not None:
            count += sum(1 + _counted(v) for v in value)
        elif all(isinstance(v, str) for v in value):
            count += len(value)
        else:  # numbers in one piece: integers count by the byte
            count += 1 + sum(1 if isinstance(v, float) else max(1, -(-v.bit_length() // 7)) for v in value)
    return count


@pytest.mark.parametrize("act", [acts.Step, acts.Prepare])
def test_bytes_cut_short_are_refused(act: type[acts.Act[Any]]) -> None:
    data = _nested(bytes(2_000_000), 2)
    with pytest.raises(ProtocolError, match=r"^\d+ bytes are no \w+Request: use a peer of the same version$"):
        decode_request(RPCS[act], data[:-1])


def _with(**wrong: Any) -> pb.Released:
    """A released message whose one tensor is ``wrong``."""
    right = {"name": "x", "dtype": "<f8", "shape": [1], "data": np.zeros(1).tobytes()}
    return pb.Released(sender="b", point=pb.EMBEDDING, tensors=[pb.Tensor(**right | wrong)])


_NAN = np.full(1, np.nan).tobytes()
#: Replies that are well-formed and wrong, each by its act.
_WRONG: dict[str, tuple[type[acts.Act[Any]], Message]] = {
    "NaN in a step": (acts.Step, pb.StepReply(released=_with(data=_NAN))),
    "NaN in a disclosure": (acts.Disclose, pb.Disclosures(released=[_with(data=_NAN)])),
    "another precision": (acts.Forward, _with(dtype="<f2")),
    "more numbers than bytes": (acts.Predict, _with(shape=[7])),
    "a name without end": (acts.Step, pb.StepReply(released=_with(name="x" * 10**6, data=_NAN))),
    "half a row": (acts.Epoch, pb.Order(rows=b"123")),
    "a stage that is none": (acts.Rejoin, pb.Standing(stage="x" * 10**6)),
    "a role that is none": (acts.Describe, pb.PartyInfo(name="b", role="king")),
}


@pytest.mark.parametrize("case", _WRONG)
def test_who_sent_a_wrong_reply_is_named(case: str) -> None:
    """A leader asks many parties at a time."""
    act, reply = _WRONG[case]
    with pytest.raises(ProtocolError, match=r"^the reply of 'b' is wrong: .") as refusal:
        RPCS[act].read_reply(reply.SerializeToString(), "b")
    assert len(str(refusal.value)) < 1_100
