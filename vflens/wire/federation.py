"""Parties, their columns and the aligned federation as messages; everything that arrives is checked."""

from __future__ import annotations

import math
import re
from typing import cast

from pydantic import ValidationError

from vflens.config import describe_problem
from vflens.errors import ConfigError, PluginError, ProtocolError, from_peer
from vflens.models.family import ModelFamily, checked_model
from vflens.models.settings import AGGREGATORS, Horizontal, Training
from vflens.names import has_controls
from vflens.protocol.agreement import Agreement
from vflens.protocol.federation import Federation
from vflens.protocol.horizontal import HorizontalFederation, check_alike
from vflens.protos import vfl_pb2 as pb
from vflens.storage.json_file import json_object
from vflens.tables.pixels import too_wide
from vflens.types import MAX_PIXEL, ColumnInfo, PartyInfo, Pixel, Role, Signature
from vflens.wire.codec import decode_rows, encode_rows
from vflens.wire.heads import decode_signature, encode_signature

MAX_CLASSES = MAX_COLUMNS = 65_536  # what a peer announces decides how much memory this party allocates
MAX_MODEL = 65_536  # characters of JSON
_MEMBERS = [role for role in Role if role is not Role.OPERATOR]


def encode_party(info: PartyInfo) -> pb.PartyInfo:
    """``info`` as a message."""
    columns = [
        pb.Column(name=c.name, low=c.low, high=c.high, alphabet=c.alphabet or (), pixel=c.pixel or ())
        for c in info.columns
    ]
    return pb.PartyInfo(
        name=info.name,
        role=info.role.value,
        columns=columns,
        n_classes=info.n_classes,
        classes=info.classes,
        train_rows=info.train_rows,
        predict_rows=info.predict_rows,
        mask_key=info.mask_key,
        signature=encode_signature(info.signature),
    )


def decode_party(message: pb.PartyInfo) -> PartyInfo:
    """The party in ``message``.

    Raises:
        ProtocolError: an unknown role, too many columns or classes, a bound or a pixel that is none.
    """
    if message.role not in _MEMBERS:
        raise ProtocolError(
            f"party {message.name!r} has role {message.role!r}: expected {', '.join(_MEMBERS)}"
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
    classes = tuple(message.classes)
    if any(map(has_controls, classes)) or len(classes) not in (0, message.n_classes):
        raise ProtocolError(
            f"party {message.name!r} names {len(classes)} of {message.n_classes} classes, or one with "
            "control characters: name each once"
        )
    if min(message.train_rows, message.predict_rows) < 0:
        raise ProtocolError(f"party {message.name!r} announces a negative number of rows: count from 0")
    if not re.fullmatch("([0-9a-f]{64})?", message.mask_key):
        raise ProtocolError(
            f"party {message.name!r} sends a key of masks of {len(message.mask_key)} characters: 64 "
            "hexadecimal digits are due, or none"
        )
    columns = tuple(map(_column, message.columns))
    if problem := too_wide(columns):
        raise ProtocolError(f"columns of party {message.name!r}: {problem}")
    numbers = (message.n_classes, classes, message.train_rows, message.predict_rows, message.mask_key)
    return PartyInfo(message.name, Role(message.role), columns, *numbers, _signature(message))


def _signature(message: pb.PartyInfo) -> Signature | None:
    if not message.HasField("signature"):
        return None
    try:
        return decode_signature(message.signature)
    except ValueError as error:
        raise ProtocolError(f"party {message.name!r}: {error}: use a peer of the same version") from error


def _column(message: pb.Column) -> ColumnInfo:
    if has_controls(message.name):
        raise ProtocolError(f"the column name {message.name!r} holds control characters: rename it")
    if not all(map(math.isfinite, (message.low, message.high, *message.alphabet))):
        raise ProtocolError(f"column {message.name!r} has a bound or value that is not finite: send numbers")
    if len(message.pixel) not in (0, 2, 3):
        raise ProtocolError(
            f"column {message.name!r} has a pixel of {len(message.pixel)} coordinates: "
            "expected row and column, or row, column and channel"
        )
    if not all(0 <= place <= MAX_PIXEL for place in message.pixel):
        raise ProtocolError(
            f"column {message.name!r} is pixel {list(message.pixel)}: numbers from 0 to {MAX_PIXEL} are drawn"
        )
    return ColumnInfo(
        message.name,
        message.low if message.HasField("low") else None,
        message.high if message.HasField("high") else None,
        tuple(message.alphabet) or None,
        cast("Pixel", tuple(message.pixel)) if message.pixel else None,
    )


def encode_federation(federation: Agreement) -> pb.Federation:
    """``federation`` as a message."""
    if isinstance(federation, HorizontalFederation):
        return pb.Federation(
            run=federation.run,
            parties=[encode_party(p) for p in federation.parties],
            training=pb.Training(**federation.training.model_dump()),
            lab=federation.lab,
            model=federation.model.model_dump_json(),
            horizontal=pb.Horizontal(**federation.horizontal.model_dump()),
        )
    assert isinstance(federation, Federation)
    return pb.Federation(
        run=federation.run,
        parties=[encode_party(p) for p in federation.parties],
        rows=federation.rows,
        train=encode_rows(federation.train),
        predict=encode_rows(federation.predict),
        training=pb.Training(**federation.training.model_dump()),
        lab=federation.lab,
        aggregator=federation.aggregator,
        model=federation.model.model_dump_json(),
    )


def decode_federation(message: pb.Federation) -> Agreement:
    """The federation in ``message``.

    Raises:
        ProtocolError: settings out of range, not exactly one active party with classes, or not only clients.
    """
    t = message.training
    try:
        training = Training(**{f.name: getattr(t, f.name) for f in t.DESCRIPTOR.fields})
    except ValidationError as error:
        raise _out_of_range("training", error) from None
    parties = tuple(map(decode_party, message.parties))
    names = [p.name for p in parties]
    if len(set(names)) < len(names):
        raise ProtocolError(f"a federation of {names}: every party has its own name")
    if message.HasField("horizontal"):
        return _horizontal(message, parties, training)
    return _vertical(message, parties, training)


def _horizontal(
    message: pb.Federation, parties: tuple[PartyInfo, ...], training: Training
) -> HorizontalFederation:
    sent = message.horizontal
    absent = {f.name for f in sent.DESCRIPTOR.fields if f.has_presence and not sent.HasField(f.name)}
    settings = {f.name: getattr(sent, f.name) for f in sent.DESCRIPTOR.fields if f.name not in absent}
    try:
        horizontal = Horizontal(**settings)
    except ValidationError as error:
        raise _out_of_range("horizontal", error) from None
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
    return HorizontalFederation(
        message.run, parties, training, message.lab, _model(message.model), horizontal
    )


def _vertical(message: pb.Federation, parties: tuple[PartyInfo, ...], training: Training) -> Federation:
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
    return Federation(
        message.run,
        parties,
        message.rows,
        decode_rows(message.train),
        decode_rows(message.predict),
        training,
        message.lab,
        _model(message.model),
        message.aggregator,
    )


def _model(text: str) -> ModelFamily:
    """The model that the JSON ``text`` describes.

    Raises:
        ProtocolError: no JSON, too long, of a family that is not installed here, or settings out of range.
    """
    if len(text) > MAX_MODEL:
        raise ProtocolError(f"a model described in {len(text)} characters: up to {MAX_MODEL} are read")
    try:
        settings = json_object(text)
    except ValueError as error:
        raise ProtocolError(
            f"a federation whose model is no JSON object ({error}): use the same version everywhere"
        ) from None
    try:
        return checked_model(settings)
    except PluginError as error:
        raise ProtocolError(f"the federation's model: {error}; install its package at every party") from None
    except ValidationError as error:
        raise _out_of_range("model", error) from None


def _out_of_range(what: str, error: ValidationError) -> ProtocolError:
    problems = "; ".join(map(describe_problem, error.errors()))
    return ProtocolError(f"{what} settings out of range: {from_peer(problems)}")
