"""Acts and replies as messages: one entry per rpc of ``protos/vfl.proto``.

:data:`RPCS` is the only table that links and servicers share; a test compares it with the service
descriptors and with :data:`vflens.protocol.vertical.access.ACCESS`.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from vflens.errors import ProtocolError, from_peer
from vflens.member.stage import Stage
from vflens.protocol import acts, mask_acts
from vflens.protocol.standing import Standing
from vflens.protocol.vertical import row_ids
from vflens.protocol.vertical.alignment import check_salts
from vflens.protos import vfl_pb2 as pb
from vflens.types import Array, RowStatus
from vflens.wire.agreements.federation import decode_federation, encode_federation
from vflens.wire.agreements.party_info import decode_party, encode_party
from vflens.wire.alignment import decode_identities, decode_salted, encode_identities
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
from vflens.wire.heads import decode_finished, decode_nonce, decode_stop, encode_finished, encode_stop
from vflens.wire.masks import DEAL, SEED
from vflens.wire.parts import check_parts
from vflens.words import counted


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
    timed: bool = True  # whether limits.call_seconds bounds a call

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
                f"party {party!r} answered with {counted(len(data), 'byte')} that are no "
                f"{self.reply.__name__}: use the same version everywhere"
            ) from None


def _decode_standing(message: pb.Standing) -> Standing:
    if message.stage not in list(Stage) or len(message.federation) not in (0, 32):
        raise ProtocolError(
            f"a party stands in stage {from_peer(message.stage)!r} with a digest of "
            f"{counted(len(message.federation), 'byte')}: use the same version everywhere"
        )
    fields = {f.name: getattr(message, f.name) for f in message.DESCRIPTOR.fields}
    return Standing(**fields | {"version": from_peer(message.version)})


def _encode_step(act: acts.Step) -> pb.StepRequest:
    received = None if act.received is None else encode_released(act.received)
    return pb.StepRequest(
        exchange=encode_exchange(act.exchange),
        rows=encode_rows(act.rows),
        received=received,
        participants=act.participants,
    )


def _decode_step(message: pb.StepRequest) -> acts.Step:
    received = decode_released(message.received) if message.HasField("received") else None
    rows, participants = decode_rows(message.rows), tuple(message.participants)
    return acts.Step(decode_exchange(message.exchange), rows, received, participants)


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
        label=reply.label,
    )


def _decode_answers(message: pb.Answers) -> acts.Answers:
    numbers, scores = decode_rows(message.numbers), decode_tensor(message.scores)
    n, k = len(numbers), len(message.classes) + bool(message.label)
    if message.label and message.classes:
        raise ProtocolError("answers with classes and a numeric label: one of them is due")
    if scores.dtype.kind != "f" or scores.shape != (n, k) or len(message.ids) != n or not k:
        raise ProtocolError(
            f"answers of {counted(n, 'row')}, {counted(len(message.ids), 'id')} and {counted(k, 'class')} "
            f"have scores of shape {scores.shape} {scores.dtype}: a number for each row and class is due"
        )
    return acts.Answers(numbers, tuple(message.ids), tuple(message.classes), scores, message.label)


def _encode_submission(act: acts.Submission) -> pb.SubmissionRequest:
    guesses = [
        pb.Guess(
            attack=g.attack,
            values=encode_tensor("values", np.ascontiguousarray(g.values, "<f8")),
            status=g.status.tobytes(),
        )
        for g in act.guesses
    ]
    plain = ("run", "sender", "scored_set", "estimates", "step")
    facts: dict[str, Any] = {name: getattr(act, name) for name in plain}
    return pb.SubmissionRequest(**facts, rows=encode_rows(act.rows), guesses=guesses)


def _decode_submission(message: pb.SubmissionRequest) -> acts.Submission:
    if len(message.guesses) > acts.MAX_ATTACKS:
        raise ProtocolError(
            f"submission of {counted(len(message.guesses), 'attack')}: at most {acts.MAX_ATTACKS} are "
            "scored at a time"
        )
    guesses = tuple(acts.Guess(g.attack, decode_tensor(g.values), _statuses(g)) for g in message.guesses)
    facts: dict[str, Any] = {n: getattr(message, n) for n in ("run", "sender", "scored_set", "estimates")}
    step = message.step if message.HasField("step") else None
    return acts.Submission(**facts, rows=decode_rows(message.rows), guesses=guesses, step=step)


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
        encode=lambda a: pb.DescribeRequest(run=a.run, nonce=a.nonce),
        decode=lambda m: acts.Describe(m.run, decode_nonce(m.nonce)),
        encode_reply=encode_party,
        decode_reply=decode_party,
    ),
    row_ids.Salt: Rpc(
        "/vflens.DataParty/Salt",
        False,
        pb.SaltRequest,
        pb.Salted,
        **_plain(pb.SaltRequest, row_ids.Salt),
        encode_reply=lambda r: pb.Salted(salt=r.salt, mode=r.mode, ids=r.ids),
        decode_reply=decode_salted,
    ),
    row_ids.Identify: Rpc(
        "/vflens.DataParty/Identify",
        False,
        pb.IdentifyRequest,
        pb.Identities,
        encode=lambda a: pb.IdentifyRequest(run=a.run, salts=a.salts, first=a.first),
        decode=lambda m: row_ids.Identify(m.run, check_salts(m.salts), m.first),
        encode_reply=encode_identities,
        decode_reply=decode_identities,
    ),
    row_ids.Blind: Rpc(
        "/vflens.DataParty/Blind",
        False,
        pb.BlindRequest,
        pb.Blinded,
        **_plain(pb.BlindRequest, row_ids.Blind),
        encode_reply=lambda r: pb.Blinded(elements=r.elements),
        decode_reply=lambda m: row_ids.Blinded(m.elements),
    ),
    acts.Prepare: Rpc(
        "/vflens.DataParty/Prepare",
        False,
        pb.PrepareRequest,
        encode=lambda a: pb.PrepareRequest(
            federation=encode_federation(a.federation), order=encode_rows(a.order), salts=a.salts
        ),
        decode=lambda m: acts.Prepare(
            decode_federation(m.federation), decode_rows(m.order), m.salts and check_salts(m.salts)
        ),
        **_DONE,
    ),
    acts.Rejoin: Rpc(
        "/vflens.DataParty/Rejoin",
        False,
        pb.RejoinRequest,
        pb.Standing,
        encode=lambda a: pb.RejoinRequest(run=a.run, standing=pb.Standing(**asdict(a.standing))),
        decode=lambda m: acts.Rejoin(m.run, _decode_standing(m.standing)),
        encode_reply=lambda r: pb.Standing(**asdict(r)),
        decode_reply=_decode_standing,
    ),
    mask_acts.Seed: Rpc("/vflens.DataParty/Seed", False, **SEED, **_plain(pb.SeedRequest, mask_acts.Seed)),
    acts.Step: Rpc(
        "/vflens.DataParty/Step",
        True,
        pb.StepRequest,
        pb.StepReply,
        encode=_encode_step,
        decode=_decode_step,
        encode_reply=_encode_step_reply,
        decode_reply=_decode_step_reply,
    ),
    acts.Train: Rpc(
        "/vflens.ActiveParty/Train",
        False,
        pb.TrainRequest,
        pb.Trained,
        **_plain(pb.TrainRequest, acts.Train),
        encode_reply=lambda r: pb.Trained(first=r.first, steps=r.steps),
        decode_reply=lambda m: acts.Trained(m.first, m.steps),
        timed=False,
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
    mask_acts.Deal: Rpc("/vflens.Coordinator/Deal", False, **DEAL, **_plain(pb.DealRequest, mask_acts.Deal)),
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
        encode=encode_stop,
        decode=decode_stop,
        **_DONE,
    ),
    acts.Forward: Rpc(
        "/vflens.PassiveParty/Forward",
        False,
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
        encode=_encode_submission,
        decode=_decode_submission,
        encode_reply=lambda r: pb.Receipt(rows=r.rows, attacks=r.attacks, errors=r.errors),
        decode_reply=lambda m: acts.Receipt(m.rows, m.attacks, dict(m.errors)),
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
        encode=encode_finished,
        decode=decode_finished,
        **_DONE,
    ),
}
