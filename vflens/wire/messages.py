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
from vflens.wire.parts import check_parts
from vflens.wire.vertical import DEAL, SEED, decode_identities, decode_salted, encode_identities
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
        try:
            check_parts(data, self.reply)
            return self.decode_reply(self.reply.FromString(data))
        except ProtocolError as error:
            raise ProtocolError(f"the reply of {party!r} is wrong: {from_peer(str(error))}") from None
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


def _rpc(
    act: type[Any], service: str, *, stream: bool = False, timed: bool = True, **codec: Any
) -> tuple[type[acts.Act[Any]], Rpc]:
    """``act`` and its rpc of ``service``: path and request have the act's name. What ``codec`` leaves out:
    fields travel as they are, and the reply is that it is done.
    """
    request = getattr(pb, f"{act.__name__}Request")
    names = [f.name for f in request.DESCRIPTOR.fields]
    plain: dict[str, Any] = {
        "encode": lambda a: request(**{n: getattr(a, n) for n in names}),
        "decode": lambda m: act(**{n: getattr(m, n) for n in names}),
    }
    path = f"/vflens.{service}/{act.__name__}"
    return act, Rpc(path, stream, request, **plain | _DONE | codec, timed=timed)


RPCS: Mapping[type[acts.Act[Any]], Rpc] = dict(
    [
        _rpc(
            acts.Describe,
            "DataParty",
            decode=lambda m: acts.Describe(m.run, decode_nonce(m.nonce)),
            reply=pb.PartyInfo,
            encode_reply=encode_party,
            decode_reply=decode_party,
        ),
        _rpc(
            row_ids.Salt,
            "DataParty",
            reply=pb.Salted,
            encode_reply=lambda r: pb.Salted(salt=r.salt, mode=r.mode, ids=r.ids),
            decode_reply=decode_salted,
        ),
        _rpc(
            row_ids.Identify,
            "DataParty",
            decode=lambda m: row_ids.Identify(m.run, check_salts(m.salts), m.first),
            reply=pb.Identities,
            encode_reply=encode_identities,
            decode_reply=decode_identities,
        ),
        _rpc(
            row_ids.Blind,
            "DataParty",
            reply=pb.Blinded,
            encode_reply=lambda r: pb.Blinded(elements=r.elements),
            decode_reply=lambda m: row_ids.Blinded(m.elements),
        ),
        _rpc(
            acts.Prepare,
            "DataParty",
            encode=lambda a: pb.PrepareRequest(
                federation=encode_federation(a.federation), order=encode_rows(a.order), salts=a.salts
            ),
            decode=lambda m: acts.Prepare(
                decode_federation(m.federation), decode_rows(m.order), m.salts and check_salts(m.salts)
            ),
        ),
        _rpc(
            acts.Rejoin,
            "DataParty",
            encode=lambda a: pb.RejoinRequest(run=a.run, standing=pb.Standing(**asdict(a.standing))),
            decode=lambda m: acts.Rejoin(m.run, _decode_standing(m.standing)),
            reply=pb.Standing,
            encode_reply=lambda r: pb.Standing(**asdict(r)),
            decode_reply=_decode_standing,
        ),
        _rpc(mask_acts.Seed, "DataParty", **SEED),
        _rpc(
            acts.Step,
            "DataParty",
            stream=True,
            encode=_encode_step,
            decode=_decode_step,
            reply=pb.StepReply,
            encode_reply=_encode_step_reply,
            decode_reply=_decode_step_reply,
        ),
        _rpc(
            acts.Train,
            "ActiveParty",
            reply=pb.Trained,
            encode_reply=lambda r: pb.Trained(first=r.first, steps=r.steps),
            decode_reply=lambda m: acts.Trained(m.first, m.steps),
            timed=False,
        ),
        _rpc(
            acts.Epoch,
            "Coordinator",
            reply=pb.Order,
            encode_reply=lambda r: pb.Order(rows=encode_rows(r.rows)),
            decode_reply=lambda m: acts.Order(decode_rows(m.rows)),
        ),
        _rpc(mask_acts.Deal, "Coordinator", **DEAL),
        _rpc(
            acts.Disclose,
            "DataParty",
            reply=pb.Disclosures,
            encode_reply=lambda reply: pb.Disclosures(released=map(encode_released, reply)),
            decode_reply=lambda m: tuple(map(decode_released, m.released)),
        ),
        _rpc(acts.Stop, "DataParty", encode=encode_stop, decode=decode_stop),
        _rpc(
            acts.Forward,
            "PassiveParty",
            encode=lambda a: pb.ForwardRequest(
                exchange=encode_exchange(a.exchange), rows=encode_rows(a.rows)
            ),
            decode=lambda m: acts.Forward(decode_exchange(m.exchange), decode_rows(m.rows)),
            **_RELEASED,
        ),
        _rpc(
            acts.Submission,
            "DataParty",
            encode=_encode_submission,
            decode=_decode_submission,
            reply=pb.Receipt,
            encode_reply=lambda r: pb.Receipt(rows=r.rows, attacks=r.attacks, errors=r.errors),
            decode_reply=lambda m: acts.Receipt(m.rows, m.attacks, dict(m.errors)),
        ),
        _rpc(
            acts.Deliver,
            "DataParty",
            encode=lambda a: pb.DeliverRequest(released=encode_released(a.released)),
            decode=lambda m: acts.Deliver(decode_released(m.released)),
        ),
        _rpc(acts.Begin, "DataParty"),
        _rpc(
            acts.Query,
            "ActiveParty",
            reply=pb.Answers,
            encode_reply=_encode_answers,
            decode_reply=_decode_answers,
        ),
        _rpc(
            acts.Predict,
            "Coordinator",
            encode=lambda a: pb.PredictRequest(embedding=encode_released(a.embedding)),
            decode=lambda m: acts.Predict(decode_released(m.embedding)),
            **_RELEASED,
        ),
        _rpc(acts.Finished, "Coordinator", encode=encode_finished, decode=decode_finished),
    ]
)
