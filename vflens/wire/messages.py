"""Acts and replies as messages: one entry per rpc of ``protos/vfl.proto``.

:data:`RPCS` is the only table that links and servicers share; a test compares it with the service
descriptors and with :data:`vflens.protocol.acts.ACCESS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from pydantic import ValidationError

from vflens.config import describe_problem
from vflens.errors import ProtocolError, from_peer
from vflens.models.settings import AGGREGATORS, SplitNetwork, Training
from vflens.names import has_controls
from vflens.protocol import acts
from vflens.protocol.alignment import check_salts
from vflens.protocol.federation import Federation
from vflens.protos import vfl_pb2 as pb
from vflens.types import MAX_PIXEL, Array, ColumnInfo, PartyInfo, Role, RowStatus
from vflens.wire.codec import (
    decode_exchange,
    decode_released,
    decode_rows,
    decode_tensor,
    encode_exchange,
    encode_released,
    encode_rows,
    encode_tensor,
)
from vflens.wire.parts import check_parts

MAX_CLASSES = MAX_COLUMNS = 65_536  # what a peer announces decides how much memory this party allocates
_MEMBERS = frozenset({Role.PASSIVE, Role.ACTIVE, Role.COORDINATOR})


@dataclass(frozen=True)
class Rpc:
    """One rpc: its path, and how request and reply travel."""

    path: str
    stream: bool
    request: type[Any]
    reply: type[Any]
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]
    encode_reply: Callable[[Any], Any]
    decode_reply: Callable[[Any], Any]

    def read_reply(self, data: bytes, party: str) -> Any:
        """The reply in ``data`` of ``party``; replies come as bytes, so that bad ones are refused by us and
        not by a traceback of the library.

        Raises:
            ProtocolError: it is none.
        """
        check_parts(data, self.reply)
        try:
            return self.decode_reply(self.reply.FromString(data))
        except DecodeError:
            raise ProtocolError(
                f"party {party!r} answered with {len(data)} bytes that are no {self.reply.__name__}: use the "
                "same version everywhere"
            ) from None


def encode_party(info: PartyInfo) -> pb.PartyInfo:
    """``info`` as a message."""
    columns = [
        pb.Column(name=c.name, low=c.low, high=c.high, alphabet=c.alphabet or (), pixel=c.pixel or ())
        for c in info.columns
    ]
    return pb.PartyInfo(name=info.name, role=info.role.value, columns=columns, n_classes=info.n_classes)


def decode_party(message: pb.PartyInfo) -> PartyInfo:
    """The party in ``message``.

    Raises:
        ProtocolError: an unknown role, too many columns or classes, a bound or a pixel that is none.
    """
    if message.role not in _MEMBERS:
        raise ProtocolError(
            f"party {message.name!r} has role {message.role!r}: passive, active or coordinator is due"
        )
    if not 0 <= message.n_classes <= MAX_CLASSES:
        raise ProtocolError(
            f"party {message.name!r} announces {message.n_classes} classes: from 0 to {MAX_CLASSES} can be "
            "learned"
        )
    if len(message.columns) > MAX_COLUMNS:
        raise ProtocolError(
            f"party {message.name!r} announces {len(message.columns)} columns: up to {MAX_COLUMNS} are "
            "learned from"
        )
    return PartyInfo(
        message.name, Role(message.role), tuple(map(_column, message.columns)), message.n_classes
    )


def _column(message: pb.Column) -> ColumnInfo:
    if has_controls(message.name):
        raise ProtocolError(f"the column name {message.name!r} holds control characters: rename it")
    if not all(map(math.isfinite, (message.low, message.high, *message.alphabet))):
        raise ProtocolError(f"column {message.name!r} has a bound or value that is not finite: send numbers")
    if len(message.pixel) not in (0, 2):
        raise ProtocolError(
            f"column {message.name!r} has a pixel of {len(message.pixel)} coordinates: row and column are due"
        )
    if not all(0 <= place <= MAX_PIXEL for place in message.pixel):
        raise ProtocolError(
            f"column {message.name!r} is pixel {list(message.pixel)}: row and column from 0 to {MAX_PIXEL} "
            "are drawn"
        )
    return ColumnInfo(
        message.name,
        message.low if message.HasField("low") else None,
        message.high if message.HasField("high") else None,
        tuple(message.alphabet) or None,
        (message.pixel[0], message.pixel[1]) if message.pixel else None,
    )


def encode_federation(federation: Federation) -> pb.Federation:
    """``federation`` as a message."""
    return pb.Federation(
        run=federation.run,
        parties=[encode_party(p) for p in federation.parties],
        rows=federation.rows,
        train=encode_rows(federation.train),
        predict=encode_rows(federation.predict),
        training=pb.Training(**federation.training.model_dump()),
        lab=federation.lab,
        aggregator=federation.aggregator,
        network=pb.SplitNetwork(**federation.network.model_dump()) if federation.network else None,
    )


def decode_federation(message: pb.Federation) -> Federation:
    """The federation in ``message``.

    Raises:
        ProtocolError: settings out of range, or not exactly one active party with classes.
    """
    t = message.training
    try:
        training = Training(**_fields(t))
        network = SplitNetwork(**_fields(message.network)) if message.HasField("network") else None
    except ValidationError as error:
        problems = "; ".join(map(describe_problem, error.errors()))
        raise ProtocolError(f"training settings out of range: {problems}") from None
    if message.aggregator not in AGGREGATORS:
        raise ProtocolError(
            f"a federation with aggregator {message.aggregator!r}: {' or '.join(AGGREGATORS)} is due"
        )
    parties = tuple(map(decode_party, message.parties))
    roles, names = [p.role for p in parties], [p.name for p in parties]
    if len(set(names)) < len(names):
        raise ProtocolError(f"a federation of {names}: every party has its own name")
    if roles.count(Role.ACTIVE) != 1 or Role.PASSIVE not in roles:
        raise ProtocolError(
            f"a federation of roles {[r.value for r in roles]}: one active and at least one passive party "
            "are due"
        )
    if parties[roles.index(Role.ACTIVE)].n_classes < 1:
        raise ProtocolError("a federation without classes: the active party has at least one")
    return Federation(
        message.run,
        parties,
        message.rows,
        decode_rows(message.train),
        decode_rows(message.predict),
        training,
        message.lab,
        network,
        message.aggregator,
    )


def _fields(message: Any) -> dict[str, Any]:
    """The fields of a flat message; a repeated one as a list."""
    values = {f.name: getattr(message, f.name) for f in message.DESCRIPTOR.fields}
    return {n: v if isinstance(v, str | int | float) else list(v) for n, v in values.items()}


def _encode_identities(reply: acts.Identities) -> pb.Identities:
    split = None if reply.split is None else reply.split.astype(np.uint8).tobytes()
    return pb.Identities(digests=reply.digests, split=split)


def _decode_identities(message: pb.Identities) -> acts.Identities:
    split = np.frombuffer(message.split, np.uint8) if message.HasField("split") else None
    return acts.Identities(message.digests, split)


def _encode_step(act: acts.Step) -> pb.StepRequest:
    received = None if act.received is None else encode_released(act.received)
    return pb.StepRequest(
        exchange=encode_exchange(act.exchange), rows=encode_rows(act.rows), received=received
    )


def _decode_step(message: pb.StepRequest) -> acts.Step:
    received = decode_released(message.received) if message.HasField("received") else None
    return acts.Step(decode_exchange(message.exchange), decode_rows(message.rows), received)


def _encode_step_reply(reply: acts.StepReply) -> pb.StepReply:
    released = None if reply.released is None else encode_released(reply.released)
    return pb.StepReply(released=released, stop=reply.stop)


def _decode_step_reply(message: pb.StepReply) -> acts.StepReply:
    released = decode_released(message.released) if message.HasField("released") else None
    return acts.StepReply(released, message.stop)


def _encode_answers(reply: acts.Answers) -> pb.Answers:
    return pb.Answers(
        numbers=encode_rows(reply.numbers),
        ids=reply.ids,
        classes=reply.classes,
        scores=encode_tensor("scores", reply.scores),
    )


def _decode_answers(message: pb.Answers) -> acts.Answers:
    numbers, scores = decode_rows(message.numbers), decode_tensor(message.scores)
    n, k = len(numbers), len(message.classes)
    if scores.dtype.kind != "f" or scores.shape != (n, k) or len(message.ids) != n or not k:
        raise ProtocolError(
            f"answers of {n} rows, {len(message.ids)} ids and {k} classes have scores of shape "
            f"{scores.shape} {scores.dtype}: a number for each row and class is due"
        )
    return acts.Answers(numbers, tuple(message.ids), tuple(message.classes), scores)


def _encode_submission(act: acts.Submission) -> pb.SubmissionRequest:
    guesses = [
        pb.Guess(
            attack=g.attack,
            values=encode_tensor("values", np.ascontiguousarray(g.values, "<f8")),
            status=g.status.tobytes(),
        )
        for g in act.guesses
    ]
    return pb.SubmissionRequest(
        run=act.run,
        sender=act.sender,
        scored_set=act.scored_set,
        rows=encode_rows(act.rows),
        guesses=guesses,
    )


def _decode_submission(message: pb.SubmissionRequest) -> acts.Submission:
    if len(message.guesses) > acts.MAX_ATTACKS:
        raise ProtocolError(
            f"submission of {len(message.guesses)} attacks: at most {acts.MAX_ATTACKS} are scored at a time"
        )
    guesses = tuple(acts.Guess(g.attack, decode_tensor(g.values), _statuses(g)) for g in message.guesses)
    rows = decode_rows(message.rows)
    return acts.Submission(message.run, message.sender, message.scored_set, rows, guesses)


def _statuses(message: pb.Guess) -> Array:
    status = np.frombuffer(message.status, np.uint8)
    if status.max(initial=0) >= len(RowStatus):
        raise ProtocolError(
            f"attack {message.attack!r} has row status {status.max()}: {', '.join(RowStatus)} are numbered "
            "from 0"
        )
    return status


def _plain(message: type[Any], act: type[Any]) -> dict[str, Any]:
    """Codec of an act whose fields travel as they are."""
    names = [f.name for f in message.DESCRIPTOR.fields]
    return {
        "encode": lambda a: message(**{n: getattr(a, n) for n in names}),
        "decode": lambda m: act(**{n: getattr(m, n) for n in names}),
    }


_DONE: dict[str, Any] = {
    "reply": pb.Done,
    "encode_reply": lambda _: pb.Done(),
    "decode_reply": lambda _: acts.Done(),
}
_RELEASED: dict[str, Any] = {
    "reply": pb.Released,
    "encode_reply": encode_released,
    "decode_reply": decode_released,
}

RPCS: Mapping[type[acts.Act[Any]], Rpc] = {
    acts.Describe: Rpc(
        "/vflens.DataParty/Describe",
        False,
        pb.DescribeRequest,
        pb.PartyInfo,
        **_plain(pb.DescribeRequest, acts.Describe),
        encode_reply=encode_party,
        decode_reply=decode_party,
    ),
    acts.Salt: Rpc(
        "/vflens.DataParty/Salt",
        False,
        pb.SaltRequest,
        pb.Salted,
        **_plain(pb.SaltRequest, acts.Salt),
        encode_reply=lambda r: pb.Salted(salt=r.salt),
        decode_reply=lambda m: acts.Salted(m.salt),
    ),
    acts.Identify: Rpc(
        "/vflens.DataParty/Identify",
        False,
        pb.IdentifyRequest,
        pb.Identities,
        encode=lambda a: pb.IdentifyRequest(run=a.run, salts=a.salts),
        decode=lambda m: acts.Identify(m.run, check_salts(m.salts)),
        encode_reply=_encode_identities,
        decode_reply=_decode_identities,
    ),
    acts.Prepare: Rpc(
        "/vflens.DataParty/Prepare",
        False,
        pb.PrepareRequest,
        encode=lambda a: pb.PrepareRequest(
            federation=encode_federation(a.federation), order=encode_rows(a.order)
        ),
        decode=lambda m: acts.Prepare(decode_federation(m.federation), decode_rows(m.order)),
        **_DONE,
    ),
    acts.Step: Rpc(
        "/vflens.DataParty/Step",
        True,
        pb.StepRequest,
        pb.StepReply,
        _encode_step,
        _decode_step,
        _encode_step_reply,
        _decode_step_reply,
    ),
    acts.Train: Rpc(
        "/vflens.ActiveParty/Train",
        True,
        pb.TrainRequest,
        pb.Trained,
        **_plain(pb.TrainRequest, acts.Train),
        encode_reply=lambda r: pb.Trained(first=r.first, steps=r.steps),
        decode_reply=lambda m: acts.Trained(m.first, m.steps),
    ),
    acts.Epoch: Rpc(
        "/vflens.Coordinator/Epoch",
        False,
        pb.EpochRequest,
        pb.Order,
        **_plain(pb.EpochRequest, acts.Epoch),
        encode_reply=lambda r: pb.Order(rows=encode_rows(r.rows)),
        decode_reply=lambda m: acts.Order(decode_rows(m.rows)),
    ),
    acts.Disclose: Rpc(
        "/vflens.DataParty/Disclose",
        False,
        pb.DiscloseRequest,
        pb.Disclosures,
        **_plain(pb.DiscloseRequest, acts.Disclose),
        encode_reply=lambda reply: pb.Disclosures(released=map(encode_released, reply)),
        decode_reply=lambda m: tuple(map(decode_released, m.released)),
    ),
    acts.Stop: Rpc(
        "/vflens.DataParty/Stop",
        False,
        pb.StopRequest,
        encode=lambda a: pb.StopRequest(run=a.run, failure=a.failure),
        decode=lambda m: acts.Stop(m.run, from_peer(m.failure)),
        **_DONE,
    ),
    acts.Forward: Rpc(
        "/vflens.PassiveParty/Forward",
        True,
        pb.ForwardRequest,
        encode=lambda a: pb.ForwardRequest(exchange=encode_exchange(a.exchange), rows=encode_rows(a.rows)),
        decode=lambda m: acts.Forward(decode_exchange(m.exchange), decode_rows(m.rows)),
        **_RELEASED,
    ),
    acts.Submission: Rpc(
        "/vflens.DataParty/Submission",
        False,
        pb.SubmissionRequest,
        pb.Receipt,
        _encode_submission,
        _decode_submission,
        lambda r: pb.Receipt(rows=r.rows, attacks=r.attacks, errors=r.errors),
        lambda m: acts.Receipt(m.rows, m.attacks, dict(m.errors)),
    ),
    acts.Deliver: Rpc(
        "/vflens.DataParty/Deliver",
        False,
        pb.DeliverRequest,
        encode=lambda a: pb.DeliverRequest(released=encode_released(a.released)),
        decode=lambda m: acts.Deliver(decode_released(m.released)),
        **_DONE,
    ),
    acts.Begin: Rpc(
        "/vflens.DataParty/Begin", False, pb.BeginRequest, **_plain(pb.BeginRequest, acts.Begin), **_DONE
    ),
    acts.Query: Rpc(
        "/vflens.ActiveParty/Query",
        False,
        pb.QueryRequest,
        pb.Answers,
        **_plain(pb.QueryRequest, acts.Query),
        encode_reply=_encode_answers,
        decode_reply=_decode_answers,
    ),
    acts.Predict: Rpc(
        "/vflens.Coordinator/Predict",
        False,
        pb.PredictRequest,
        encode=lambda a: pb.PredictRequest(embedding=encode_released(a.embedding)),
        decode=lambda m: acts.Predict(decode_released(m.embedding)),
        **_RELEASED,
    ),
    acts.Finished: Rpc(
        "/vflens.Coordinator/Finished",
        False,
        pb.FinishedRequest,
        **_plain(pb.FinishedRequest, acts.Finished),
        **_DONE,
    ),
}
