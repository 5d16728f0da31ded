"""The agreement of a vertical run as a message."""

from vflens.errors import ProtocolError
from vflens.models.settings import AGGREGATORS, Training
from vflens.protocol.agreement import Agreement
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.protos import vfl_pb2 as pb
from vflens.types import PartyInfo, Role
from vflens.wire.agreements.model import decode_model
from vflens.wire.codec import decode_rows, encode_rows
from vflens.wire.heads import decode_nonce


def encode_aligned(federation: Agreement) -> pb.Federation:
    """What a vertical run has beside what every run has."""
    assert isinstance(federation, VerticalAgreement)
    return pb.Federation(
        rows=federation.rows,
        train=encode_rows(federation.train),
        predict=encode_rows(federation.predict),
        aggregator=federation.aggregator,
    )


def decode_aligned(
    message: pb.Federation, parties: tuple[PartyInfo, ...], training: Training
) -> VerticalAgreement:
    """The vertical agreement in ``message``, of ``parties``.

    Raises:
        ProtocolError: an unknown aggregator, or not exactly one active party with classes.
    """
    if message.aggregator not in AGGREGATORS:
        raise ProtocolError(
            f"a federation with aggregator {message.aggregator!r}: expected {' or '.join(AGGREGATORS)}"
        )
    roles = [p.role for p in parties]
    if roles.count(Role.ACTIVE) != 1 or Role.PASSIVE not in roles:
        raise ProtocolError(
            f"a federation of roles {[r.value for r in roles]}: expected one active and at least one "
            "passive party"
        )
    if parties[roles.index(Role.ACTIVE)].n_classes < 1:
        raise ProtocolError("a federation without classes: the active party has at least one")
    return VerticalAgreement(
        run=message.run,
        parties=parties,
        rows=message.rows,
        train=decode_rows(message.train),
        predict=decode_rows(message.predict),
        training=training,
        lab=message.lab,
        model=decode_model(message.model),
        aggregator=message.aggregator,
        nonce=decode_nonce(message.nonce),
    )
