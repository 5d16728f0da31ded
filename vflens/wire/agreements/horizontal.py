"""The agreement of a horizontal run as a message."""

from pydantic import ValidationError

from vflens.errors import ConfigError, ProtocolError
from vflens.models.settings import Horizontal, Training
from vflens.protocol.agreement import Agreement
from vflens.protocol.horizontal.agreement import HorizontalAgreement, check_alike
from vflens.protos import vfl_pb2 as pb
from vflens.types import PartyInfo, Role
from vflens.wire.agreements.model import decode_model, out_of_range
from vflens.wire.heads import decode_nonce


def encode_rounds(federation: Agreement) -> pb.Federation:
    """What a horizontal run has beside what every run has."""
    assert isinstance(federation, HorizontalAgreement)
    return pb.Federation(horizontal=pb.Horizontal(**federation.horizontal.model_dump()))


def decode_rounds(
    message: pb.Federation, parties: tuple[PartyInfo, ...], training: Training
) -> HorizontalAgreement:
    """The horizontal agreement in ``message``, of ``parties``.

    Raises:
        ProtocolError: settings out of range, or not only clients that are alike, in order.
    """
    sent = message.horizontal
    absent = {f.name for f in sent.DESCRIPTOR.fields if f.has_presence and not sent.HasField(f.name)}
    settings = {f.name: getattr(sent, f.name) for f in sent.DESCRIPTOR.fields if f.name not in absent}
    try:
        horizontal = Horizontal(**settings)
    except ValidationError as error:
        raise out_of_range("horizontal", error) from None
    if not parties or any(p.role is not Role.CLIENT for p in parties):
        roles = [p.role.value for p in parties]
        raise ProtocolError(f"a horizontal federation of roles {roles}: expected clients, at least one")
    if list(parties) != sorted(parties, key=lambda p: p.name):
        raise ProtocolError("clients out of order: their updates are added by name, send them so")
    try:
        check_alike(parties)
        horizontal.check_clients(len(parties))
    except (ConfigError, ValueError) as error:
        raise ProtocolError(str(error)) from None
    return HorizontalAgreement(
        run=message.run,
        parties=parties,
        training=training,
        lab=message.lab,
        model=decode_model(message.model),
        horizontal=horizontal,
        nonce=decode_nonce(message.nonce),
    )
