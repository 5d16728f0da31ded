"""The heads of logs as messages, and back; everything that arrives is checked here."""

from collections.abc import Mapping
from functools import lru_cache
from threading import Lock

from vflens.errors import ProtocolError, from_peer
from vflens.protocol import acts
from vflens.protos import vfl_pb2 as pb
from vflens.storage.chain import Head
from vflens.storage.heads import checked
from vflens.storage.sent_heads import SentHeads, check_form, check_nonce, checked_sent
from vflens.types import Signature
from vflens.wire.once import once_in_a_row

_decoding = Lock()


def encode_finished(act: acts.Finished) -> pb.FinishedRequest:
    """``act`` as a message."""
    return pb.FinishedRequest(run=act.run, sender=act.sender, heads=_encoded(act.sender, act.heads))


def decode_finished(message: pb.FinishedRequest) -> acts.Finished:
    """The act in ``message``.

    Raises:
        ProtocolError: heads that no log has.
    """
    return acts.Finished(message.run, message.sender, _decoded(message.heads))


def encode_stop(act: acts.Stop) -> pb.StopRequest:
    """``act`` as a message."""
    return pb.StopRequest(run=act.run, failure=act.failure, heads=_all_encoded(act.heads))


@once_in_a_row
def _all_encoded(heads: Mapping[str, SentHeads]) -> list[pb.PartyHeads]:
    return [_encoded(party, sent) for party, sent in heads.items()]


def decode_stop(message: pb.StopRequest) -> acts.Stop:
    """The act in ``message``; parties that share a process share it, as in a run in one process.

    Raises:
        ProtocolError: heads that no log has.
    """
    with _decoding:  # once, where many get it at a time
        return _stop(message.SerializeToString(deterministic=True))


@lru_cache(maxsize=1)
def _stop(data: bytes) -> acts.Stop:
    message = pb.StopRequest.FromString(data)
    heads = {party.party: _decoded(party) for party in message.heads}
    return acts.Stop(message.run, from_peer(message.failure), heads)


def _encoded(party: str, sent: SentHeads) -> pb.PartyHeads:
    heads = [pb.Head(log=name, records=head.records, link=head.link) for name, head in sent.heads.items()]
    signature = encode_signature(sent.signature)
    return pb.PartyHeads(
        party=party, heads=heads, federation=sent.federation, signature=signature, nonce=sent.nonce
    )


def _decoded(message: pb.PartyHeads) -> SentHeads:
    heads: dict[str, Head] = {}
    try:
        for sent in message.heads:
            heads[sent.log] = checked(sent.log, Head(sent.records, sent.link))
        signature = decode_signature(message.signature) if message.HasField("signature") else None
        return checked_sent(SentHeads(heads, message.federation, signature, message.nonce))
    except ValueError as error:
        raise ProtocolError(f"{error}: use a peer of the same version") from error


def decode_nonce(nonce: str) -> str:
    """The ``nonce`` of a run.

    Raises:
        ProtocolError: it is none.
    """
    try:
        check_nonce(nonce)
    except ValueError as error:
        raise ProtocolError(f"{error}: use a peer of the same version") from error
    return nonce


def encode_signature(signature: Signature | None) -> pb.Signature | None:
    """``signature`` as a message."""
    return None if signature is None else pb.Signature(**signature._asdict())


def decode_signature(message: pb.Signature) -> Signature:
    """The signature in ``message``.

    Raises:
        ValueError: it is none.
    """
    signature = Signature(message.certificates, message.value)
    check_form(signature)
    return signature
