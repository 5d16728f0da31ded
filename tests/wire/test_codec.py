"""Every act and every reply survives the wire bit for bit; what breaks the contract is refused in one
sentence.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wirecases import ACTS, RELEASED, REPLIES, clients, equal, message, quick, tensor

from vflens.errors import ProtocolError
from vflens.protocol import acts, mask_acts
from vflens.protocol.horizontal.access import HORIZONTAL_ACCESS
from vflens.protocol.vertical import row_ids
from vflens.protocol.vertical.access import ACCESS, DIRECT_ACCESS
from vflens.protos import vfl_pb2 as pb
from vflens.types import DTYPES, ColumnInfo, Released, Role
from vflens.wire.agreements.federation import decode_federation
from vflens.wire.agreements.party_info import decode_parties, decode_party, encode_parties, encode_party
from vflens.wire.codec import (
    decode_exchange,
    decode_released,
    decode_rows,
    decode_tensor,
    encode_released,
)
from vflens.wire.messages import RPCS

SERVICES = pb.DESCRIPTOR.services_by_name
METHODS = {
    f"/{service.full_name}/{method.name}": method
    for service in SERVICES.values()
    for method in service.methods
}


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
    named = [act for module in (acts, mask_acts, row_ids) for act in vars(module).values()]
    classes = {a for a in named if isinstance(a, type) and issubclass(a, acts.Act)}
    declared = classes - {acts.Act, acts.Signed}
    tables = (ACCESS, DIRECT_ACCESS, HORIZONTAL_ACCESS)
    assert set(RPCS) == set().union(*tables)
    assert set(RPCS) == set(ACTS) == set(REPLIES) == declared
    assert all(rpc.path.rpartition("/")[2] == act.__name__ for act, rpc in RPCS.items())


def test_equal_columns_of_clients_are_decoded_once() -> None:
    columns = tuple(ColumnInfo(f"x{j}", 0.0, 1.0) for j in range(3))
    described = [*clients(columns, [4, 5]), *clients((*columns[:2], ColumnInfo("y", 0.0, 2.0)), [6])]
    messages = [*encode_parties(described)]
    assert [len(of.columns) for of in messages] == [3, 0, 3]
    decoded = decode_parties(messages)
    assert list(decoded) == described
    assert decoded[1].columns is decoded[0].columns
    assert decoded[2].columns is not decoded[0].columns


def party(**changes: Any) -> pb.PartyInfo:
    right: dict[str, Any] = {"name": "a", "role": "passive"}
    return pb.PartyInfo(**right | changes)


def federation(**changes: Any) -> pb.Federation:
    training = {"optimizer": "adam", "epochs": 1, "batch_size": 1, "learning_rate": 0.1}
    right: dict[str, Any] = {
        "parties": [party(), party(name="b", role="active", n_classes=2)],
        "aggregator": "coordinator",
        "model": '{"family": "softmax_regression"}',
        "training": pb.Training(**training | changes.pop("training", {})),
    }
    return pb.Federation(**right | changes)


def test_the_right_messages_are_taken() -> None:
    """Otherwise the refusals below could have another reason."""
    assert decode_tensor(tensor()).shape == (2, 1)
    assert decode_released(message(tensors=[tensor()])).sender == "a"
    assert decode_federation(federation()).n_classes == 2


DTYPE = "send one of <f4, <f8, <i4, <i8, |b1, |u1"
ROLES = "passive, active, coordinator, client, server"


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"dtype": "|O"}, f"tensor 't' has dtype '|O': {DTYPE}"),
        ({"dtype": ">f8"}, f"tensor 't' has dtype '>f8': {DTYPE}"),
        ({"dtype": ""}, f"tensor 't' has dtype '': {DTYPE}"),
        ({"shape": [-2, -1]}, "tensor 't' has shape (-2, -1): no dimension is negative"),
        ({"shape": [1] * 9}, "tensor 't' has 9 dimensions: expected at most 8"),
        ({"shape": [3]}, "tensor 't' of shape (3,) <f8 has 16 bytes: expected 24"),
        ({"shape": []}, "tensor 't' of shape () <f8 has 16 bytes: expected 8"),
        ({"data": b"1234567"}, "tensor 't' of shape (2, 1) <f8 has 7 bytes: expected 16"),
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
        ({"rows": b"123"}, "rows of 3 bytes: expected 4 bytes a row"),
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
        ({"role": "operator"}, f"party 'a' has role 'operator': expected {ROLES}"),
        ({"role": ""}, f"party 'a' has role '': expected {ROLES}"),
        *(
            (
                {"mask_key": key},
                f"party 'a' sends a key of masks of {len(key)} characters: 64 hexadecimal digits are due, or "
                "none",
            )
            for key in ("00" * 31, "0" * 63 + "g")
        ),
        ({"train_rows": -1}, "party 'a' announces a negative number of rows: count from 0"),
        (
            {"n_classes": 2, "classes": ["no"]},
            "party 'a' names 1 of 2 classes, or one with control characters: name each once",
        ),
        ({"n_classes": -1}, "party 'a' announces -1 classes: from 0 to 65536 can be learned"),
        ({"n_classes": 2**31 - 1}, "party 'a' announces 2147483647 classes: from 0 to 65536 can be learned"),
        (
            {"columns": [pb.Column()] * 65_537},
            "party 'a' announces 65537 columns: up to 65536 are learned from",
        ),
        (
            {"columns": [pb.Column(name="c", pixel=[1])]},
            "column 'c' has a pixel of 1 coordinates: expected row and column, or row, column and channel",
        ),
        (
            {"columns": [pb.Column(name="c", pixel=[1, 2, 4096])]},
            "column 'c' is pixel [1, 2, 4096]: numbers from 0 to 4095 are drawn",
        ),
        (
            {"columns": [pb.Column(name="c", low=float("nan"))]},
            "column 'c' has a bound or value that is not finite: send numbers",
        ),
        (
            {"columns": [pb.Column(name="c", alphabet=[float("inf")])]},
            "column 'c' has a bound or value that is not finite: send numbers",
        ),
        *(
            (
                {"n_classes": k, "label": pb.Column(name="y", low=low, high=high, alphabet=alphabet)},
                f"party 'a' announces {classes} and the numeric label 'y' from {low} to {high}: one number "
                "with bounds is due",
            )
            for k, classes, low, high, alphabet in (
                (2, "2 classes", 0.0, 1.0, []),
                (1, "1 class", None, None, []),
                (1, "1 class", 0.0, None, []),
                (1, "1 class", 1.0, 1.0, []),
                (1, "1 class", -1.7e308, 1.7e308, []),
                (1, "1 class", 0.0, 1.0, [0.5]),
            )
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
        ({"parties": []}, "a federation of roles []: expected one active and at least one passive party"),
        (
            {"parties": [party()]},
            "a federation of roles ['passive']: expected one active and at least one passive party",
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
            "a federation with aggregator 'nobody': expected coordinator or active",
        ),
        (
            {"training": {"staleness": 2}},
            "training settings out of range: staleness: give 1 or less (got 2)",
        ),
        (
            {"training": {"epochs": 0}},
            "training settings out of range: epochs: give 1 or more (got 0)",
        ),
        (
            {"training": {"learning_rate": float("inf")}},
            "training settings out of range: learning_rate: give a finite number (got inf)",
        ),
        (
            {"training": {"optimizer": "lion"}},
            "training settings out of range: optimizer: give 'adam' or 'sgd' (got 'lion')",
        ),
        (
            {"model": '{"family": "split_network", "architecture": "mlp", "width": 0}'},
            "model settings out of range: width: give 1 or more (got 0)",
        ),
        (
            {"model": '{"family": "split_network", "architecture": "mlp", "\\u001b[2J": 1}'},
            r"model settings out of range: \x1b[2J: there is no such setting",
        ),
        (
            {"model": '{"family": "far_away"}'},
            "the federation's model: unknown models plug-in 'far_away': known are linear_regression, "
            "softmax_regression, split_network; install its package at every party",
        ),
        (
            {"model": ""},
            "a federation whose model is no JSON object (no JSON from line 1, character 1): use the "
            "same version everywhere",
        ),
        ({"model": " " * 65_537}, "a model described in 65537 characters: up to 65536 are read"),
    ],
)
def test_wrong_federations_are_refused(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ProtocolError, match=f"^{re.escape(sentence)}$"):
        decode_federation(federation(**wrong))


def test_row_statuses_are_known() -> None:
    guess = pb.Guess(attack="ls", values=tensor(), status=b"\0\6")
    with pytest.raises(ProtocolError, match=r"^attack 'ls' has row status 6: ok, .* are numbered from 0$"):
        RPCS[acts.Submission].decode(pb.SubmissionRequest(guesses=[guess]))


def test_what_ended_a_run_is_one_printable_sentence() -> None:
    sent = acts.Stop("r", "\x1b[2J\nall is well\u202e" + "x" * 10_000)
    received = RPCS[acts.Stop].decode(RPCS[acts.Stop].encode(sent))
    assert received.failure.startswith(r"\x1b[2J\nall is well\u202exxx")
    assert len(received.failure) < 1_100


@pytest.mark.parametrize("name", ["a\nb", "\x1b[2J", "a\u2028b"])
def test_a_column_name_with_control_characters_is_refused(name: str) -> None:
    message = pb.PartyInfo(name="a", role="passive", columns=[pb.Column(name=name)])
    with pytest.raises(ProtocolError, match=r"^the column name .* holds control characters: rename it$"):
        decode_party(message)


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        (pb.Head(log="diary", link=bytes(32)), "'diary' is no log: expected one of transcript"),
        (
            pb.Head(log="released", records=-1, link=bytes(32)),
            "-1 records and a link of 32 bytes are no head",
        ),
        (pb.Head(log="digests", records=2, link=b"short"), "2 records and a link of 5 bytes are no head"),
    ],
)
def test_a_head_that_no_log_has_is_refused(head: pb.Head, problem: str) -> None:
    with pytest.raises(ProtocolError, match=problem):
        RPCS[acts.Finished].decode(pb.FinishedRequest(heads=pb.PartyHeads(heads=[head])))
    with pytest.raises(ProtocolError, match=problem):
        RPCS[acts.Stop].decode(pb.StopRequest(heads=[pb.PartyHeads(party="p", heads=[head])]))


def test_each_client_has_columns_of_its_own() -> None:
    """A client without columns took those of whoever stood before it."""
    columns = (ColumnInfo("x", 0.0, 1.0),)
    first, other = clients(columns, [4, 5])
    server, none = replace(first, name="server", role=Role.SERVER), encode_party(other, ())
    for before in ([], [server]):
        with pytest.raises(ProtocolError, match="client 'c1' has no columns: each has its own, at least one"):
            decode_parties([*map(encode_party, before), none])
    messages = [*encode_parties([first, server, other])]
    assert [len(message.columns) for message in messages] == [1, 1, 1]
    assert decode_parties(messages) == (first, server, other)
