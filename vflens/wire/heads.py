"""The heads of logs as messages, and back; everything that arrives is checked here."""

from __future__ import annotations

from collections.abc import Iterable

from vflens.errors import ProtocolError, from_peer
from vflens.protocol import acts
from vflens.protos import vfl_pb2 as pb
from vflens.storage.chain import Head
from vflens.storage.heads import Heads, checked


def encode_finished(act: acts.Finished) -> pb.FinishedRequest:
    """``act`` as a message."""
    return pb.FinishedRequest(run=act.run, sender=act.sender, heads=_encoded(act.heads))


def decode_finished(message: pb.FinishedRequest) -> acts.Finished:
    """The act in ``message``.

    Raises:
        ProtocolError: heads that no log has.
    """
    return acts.Finished(message.run, message.sender, _decoded(message.heads))


def encode_stop(act: acts.Stop) -> pb.StopRequest:
    """``act`` as a message."""
    heads = [pb.PartyHeads(party=party, heads=_encoded(heads)) for party, heads in act.heads.items()]
    return pb.StopRequest(run=act.run, failure=act.failure, heads=heads)


def decode_stop(message: pb.StopRequest) -> acts.Stop:
    """The act in ``message``.

    Raises:
        ProtocolError: heads that no log has.
    """
    heads = {party.party: _decoded(party.heads) for party in message.heads}
    return acts.Stop(message.run, from_peer(message.failure), heads)


def _encoded(heads: Heads) -> list[pb.Head]:
    return [pb.Head(log=name, records=head.records, link=head.link) for name, head in heads.items()]


def _decoded(message: Iterable[pb.Head]) -> Heads:
    heads: dict[str, Head] = {}
    for sent in message:
        try:
            heads[sent.log] = checked(sent.log, Head(sent.records, sent.link))
        except ValueError as error:
            raise ProtocolError(f"{error}: use a peer of the same version") from error
    return heads
