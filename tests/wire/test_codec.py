"""Every act and every reply survives the wire bit for bit; what breaks the contract is refused in one sentence."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wirecases import ACTS, RELEASED, REPLIES, equal

from protos import vfl_pb2 as pb
from vfl import acts
from vfl.acts import ACCESS, DIRECT_ACCESS
from vfl.errors import ProtocolError
from vfl.types import Released
from vfl.wire.codec import (
    DTYPES,
    decode_exchange,
    decode_released,
    decode_rows,
    decode_tensor,
    encode_released,
)
from vfl.wire.messages import RPCS, decode_federation, decode_party

SERVICES = pb.DESCRIPTOR.services_by_name
METHODS = {
    f"/{service.full_name}/{method.name}": method
    for service in SERVICES.values()
    for method in service.methods
}
quick = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("act", RPCS, ids=lambda a: a.__name__)
@given(data=st.data())
@quick
def test_acts_survive(act: type[acts.Act[Any]], data: st.DataObject) -> None:
    sent, rpc = data.draw(ACTS[act]), RPCS[act]
    assert equal(rpc.decode(rpc.request.FromString(rpc.encode(sent).SerializeToString())), sent)


@pytest.mark.parametrize("act", RPCS, ids=lambda a: a.__name__)
@given(data=st.data())
@quick
def test_replies_survive(act: type[acts.Act[Any]], data: st.DataObject) -> None:
    sent, rpc = data.draw(REPLIES[act]), RPCS[act]
    assert equal(rpc.decode_reply(rpc.reply.FromString(rpc.encode_reply(sent).SerializeToString())), sent)


@given(RELEASED)
@quick
def test_decoded_arrays_are_read_only_and_little_endian(released: Released) -> None:
    received = decode_released(pb.Released.FromString(encode_released(released).SerializeToString()))
    for array in (received.rows, *(received.tensors or {}).values()):
        assert not array.flags.writeable
        assert array.dtype.str in DTYPES


def test_the_table_is_the_proto() -> None:
    assert {rpc.path for rpc in RPCS.values()} == METHODS.keys()
    for rpc in RPCS.values():
        method = METHODS[rpc.path]
        assert rpc.request.DESCRIPTOR is method.input_type, rpc.path
        assert rpc.reply.DESCRIPTOR is method.output_type, rpc.path
        assert method.client_streaming == method.server_streaming == rpc.stream, rpc.path


def test_every_act_has_an_rpc_and_an_entry_of_the_access_table() -> None:
    declared = {a for a in vars(acts).values() if isinstance(a, type) and issubclass(a, acts.Act)} - {
        acts.Act
    }
    assert set(RPCS) == set(ACCESS) == set(DIRECT_ACCESS) == set(ACTS) == set(REPLIES) == declared
    assert all(rpc.path.rpartition("/")[2] == act.__name__ for act, rpc in RPCS.items())


def tensor(**changes: Any) -> pb.Tensor:
    right: dict[str, Any] = {"name": "t", "dtype": "<f8", "shape": [2, 1], "data": np.ones(2).tobytes()}
    return pb.Tensor(**right | changes)


def message(**changes: Any) -> pb.Released:
    right: dict[str, Any] = {"sender": "a", "exchange": pb.Exchange(run="r", phase=pb.TRAIN), "point": 1}
    return pb.Released(**right | changes)


def party(**changes: Any) -> pb.PartyInfo:
    right: dict[str, Any] = {"name": "a", "role": "passive"}
    return pb.PartyInfo(**right | changes)


def federation(**changes: Any) -> pb.Federation:
    training = {"optimizer": "adam", "epochs": 1, "batch_size": 1, "learning_rate": 0.1}
    right: dict[str, Any] = {
        "parties": [party(), party(name="b", role="active", n_classes=2)],
        "aggregator": "coordinator",
        "training": pb.Training(**training | changes.pop("training", {})),
    }
    return pb.Federation(**right | changes)


def test_the_right_messages_are_taken() -> None:
    """Otherwise the refusals below could have another reason."""
    assert decode_tensor(tensor()).shape == (2, 1)
    assert decode_released(message(tensors=[tensor()])).sender == "a"
    assert decode_federation(federation()).n_classes == 2


DTYPE = "send one of <f4, <f8, <i4, <i8, |b1, |u1"


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"dtype": "|O"}, f"tensor 't' has dtype '|O': {DTYPE}"),
        ({"dtype": ">f8"}, f"tensor 't' has dtype '>f8': {DTYPE}"),
        ({"dtype": ""}, f"tensor 't' has dtype '': {DTYPE}"),
        ({"shape": [-2, -1]}, "tensor 't' has shape (-2, -1): at most 8 dimensions, none negative"),
        ({"shape": [1] * 9}, f"tensor 't' has shape {(1,) * 9}: at most 8 dimensions, none negative"),
        ({"shape": [3]}, "tensor 't' of shape (3,) <f8 has 16 bytes: 24 are due"),
        ({"shape": []}, "tensor 't' of shape () <f8 has 16 bytes: 8 are due"),
        ({"data": b"1234567"}, "tensor 't' of shape (2, 1) <f8 has 7 bytes: 16 are due"),
        ({"shape": [0, 2**62], "data": b""}, f"tensor 't' has shape (0, {2**62}): no message holds so much"),
        ({"shape": [2**62, 2**62]}, f"tensor 't' has shape ({2**62}, {2**62}): no message holds so much"),
        (
            {"dtype": "|b1", "data": b"\0\7"},
            "tensor 't' holds a byte that is no truth value: send 0 or 1",
        ),
    ],
)
def test_wrong_tensors_are_refused(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ProtocolError, match=f"^{re.escape(sentence)}$"):
        decode_tensor(tensor(**wrong))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"point": 0}, "payload from 'a' of unknown kind 0: use a peer of the same version"),
        ({"point": 99}, "payload from 'a' of unknown kind 99: use a peer of the same version"),
        ({"tensors": [tensor(), tensor()]}, "payload from 'a' names tensor 't' twice"),
        ({"rows": b"123"}, "rows of 3 bytes: 4 bytes a row are due"),
        (
            {"tensors": [tensor(data=np.array([1, np.nan]).tobytes())]},
            "tensor 't' holds NaN: send finite numbers (−inf only among scores)",
        ),
        (
            {"exchange": pb.Exchange.FromString(b"\x10\x07")},
            "exchange with phase 7, round 0, step 0: name a phase, count from 0",
        ),
    ],
)
def test_wrong_payloads_are_refused(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ProtocolError, match=f"^{re.escape(sentence)}$"):
        decode_released(message(**wrong))


@pytest.mark.parametrize("wrong", [{}, {"phase": pb.TRAIN, "round": -1}, {"phase": pb.TRAIN, "step": -1}])
def test_wrong_exchanges_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError, match=r"name a phase, count from 0$"):
        decode_exchange(pb.Exchange(**wrong))


def test_rows_are_whole_positions() -> None:
    assert decode_rows(np.array([3, -1], "<i4").tobytes()).tolist() == [3, -1]
    assert decode_rows(b"").dtype == np.int32


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"role": "operator"}, "party 'a' has role 'operator': passive, active or coordinator is due"),
        ({"role": ""}, "party 'a' has role '': passive, active or coordinator is due"),
        ({"n_classes": -1}, "party 'a' announces -1 classes: from 0 to 65536 can be learned"),
        ({"n_classes": 2**31 - 1}, "party 'a' announces 2147483647 classes: from 0 to 65536 can be learned"),
        (
            {"columns": [pb.Column(name="c", pixel=[1])]},
            "column 'c' has a pixel of 1 coordinates: row and column are due",
        ),
        (
            {"columns": [pb.Column(name="c", low=float("nan"))]},
            "column 'c' has a bound or value that is not finite: send numbers",
        ),
        (
            {"columns": [pb.Column(name="c", alphabet=[float("inf")])]},
            "column 'c' has a bound or value that is not finite: send numbers",
        ),
    ],
)
def test_wrong_parties_are_refused(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ProtocolError, match=f"^{re.escape(sentence)}$"):
        decode_party(party(**wrong))


ACTIVE = party(name="b", role="active", n_classes=2)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"parties": []}, "a federation of roles []: one active and at least one passive party are due"),
        (
            {"parties": [party()]},
            "a federation of roles ['passive']: one active and at least one passive party are due",
        ),
        (
            {"parties": [party(), party(), ACTIVE]},
            "a federation of ['a', 'a', 'b']: every party has its own name",
        ),
        (
            {"parties": [party(), party(name="b", role="active")]},
            "a federation without classes: the active party has at least one",
        ),
        (
            {"aggregator": "nobody"},
            "a federation with aggregator 'nobody': coordinator or active is due",
        ),
        (
            {"training": {"staleness": 2}},
            "training settings out of range: staleness: Input should be less than or equal to 1 (got 2)",
        ),
        (
            {"training": {"epochs": 0}},
            "training settings out of range: epochs: Input should be greater than or equal to 1 (got 0)",
        ),
        (
            {"training": {"learning_rate": float("inf")}},
            "training settings out of range: learning_rate: Input should be a finite number (got inf)",
        ),
        (
            {"training": {"optimizer": "lion"}},
            "training settings out of range: optimizer: Input should be 'adam' or 'sgd' (got 'lion')",
        ),
    ],
)
def test_wrong_federations_are_refused(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ProtocolError, match=f"^{re.escape(sentence)}$"):
        decode_federation(federation(**wrong))


def test_row_statuses_are_known() -> None:
    guess = pb.Guess(attack="ls", values=tensor(), status=["ok", "maybe"])
    with pytest.raises(ProtocolError, match=r"^attack 'ls' has row status 'maybe': use one of ok, "):
        RPCS[acts.Submission].decode(pb.SubmissionRequest(guesses=[guess]))
