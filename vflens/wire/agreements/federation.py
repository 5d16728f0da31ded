"""The federation that all parties of a run agreed on as a message; everything that arrives is checked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock

from pydantic import ValidationError

from vflens.errors import ProtocolError
from vflens.models.settings import Training
from vflens.protocol.agreement import Agreement
from vflens.protos import vfl_pb2 as pb
from vflens.types import PartyInfo, Setting
from vflens.wire.agreements.horizontal import decode_rounds, encode_rounds
from vflens.wire.agreements.model import out_of_range
from vflens.wire.agreements.party_info import decode_parties, encode_parties
from vflens.wire.agreements.vertical import decode_aligned, encode_aligned

_decoding = Lock()


@dataclass(frozen=True)
class Terms:
    """How the agreement of one setting crosses the wire, beside what every agreement has."""

    encode: Callable[[Agreement], pb.Federation]
    decode: Callable[[pb.Federation, tuple[PartyInfo, ...], Training], Agreement]


TERMS: Mapping[Setting, Terms] = {
    Setting.VERTICAL: Terms(encode_aligned, decode_aligned),
    Setting.HORIZONTAL: Terms(encode_rounds, decode_rounds),
}


@lru_cache(maxsize=1)
def encode_federation(federation: Agreement) -> pb.Federation:
    """``federation`` as a message; the leader sends the last one to every data party."""
    message = TERMS[federation.setting].encode(federation)
    message.MergeFrom(
        pb.Federation(
            run=federation.run,
            parties=encode_parties(federation.parties),
            training=pb.Training(**federation.training.model_dump()),
            lab=federation.lab,
            model=federation.model.model_dump_json(),
            nonce=federation.nonce,
        )
    )
    return message


def decode_federation(message: pb.Federation) -> Agreement:
    """The federation in ``message``; parties that share a process share it, as in a run in one process.

    Raises:
        ProtocolError: settings out of range, not exactly one active party with classes, or not only clients.
    """
    with _decoding:  # once, where many get it at a time
        return _decoded(message.SerializeToString(deterministic=True))


@lru_cache(maxsize=1)
def _decoded(data: bytes) -> Agreement:
    message = pb.Federation.FromString(data)
    t = message.training
    try:
        named = {f.name: getattr(t, f.name) for f in t.DESCRIPTOR.fields}
        training = Training(**named | {"protection": t.protection or "none"})
    except ValidationError as error:
        raise out_of_range("training", error) from None
    parties = decode_parties(message.parties)
    names = [p.name for p in parties]
    if len(set(names)) < len(names):
        raise ProtocolError(f"a federation of {names}: every party has its own name")
    setting = Setting.HORIZONTAL if message.HasField("horizontal") else Setting.VERTICAL
    return TERMS[setting].decode(message, parties, training)
