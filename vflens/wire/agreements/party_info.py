"""Parties and their columns as messages; everything that arrives is checked."""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import cast

from vflens.errors import ProtocolError
from vflens.names import has_controls
from vflens.protocol.roles import ROLES
from vflens.protos import vfl_pb2 as pb
from vflens.tables.pixels import too_wide
from vflens.types import MAX_PIXEL, ColumnInfo, PartyInfo, Pixel, Role, Signature
from vflens.wire.heads import decode_signature, encode_signature
from vflens.wire.once import once_in_a_row
from vflens.words import counted

MAX_CLASSES = MAX_COLUMNS = 65_536  # what a peer announces decides how much memory this party allocates
_MEMBERS = [role for role in Role if role is not Role.OPERATOR]
#: Roles whose columns are those of all others of the role, so written once.
_ALIKE = {role.value for role, facts in ROLES.items() if facts.alike}


def encode_parties(infos: Iterable[PartyInfo]) -> Iterator[pb.PartyInfo]:
    """``infos`` as messages; a client with the columns of the client before names none."""
    before = tuple[ColumnInfo, ...]()
    for info in infos:
        alike = bool(before) and replace(info, columns=()).in_full(before) == info
        yield encode_party(info, () if alike else info.columns)
        before = info.columns if info.role in _ALIKE else ()


def encode_party(info: PartyInfo, columns: tuple[ColumnInfo, ...] | None = None) -> pb.PartyInfo:
    """``info`` as a message, with its ``columns``, or those given."""
    return pb.PartyInfo(
        name=info.name,
        role=info.role.value,
        columns=_all_encoded(info.columns if columns is None else columns),
        n_classes=info.n_classes,
        label=None if info.label is None else _encoded(info.label),
        classes=info.classes,
        train_rows=info.train_rows,
        predict_rows=info.predict_rows,
        mask_key=info.mask_key,
        categories=info.categories,
        signature=encode_signature(info.signature),
    )


@once_in_a_row
def _all_encoded(columns: tuple[ColumnInfo, ...]) -> list[pb.Column]:
    return [*map(_encoded, columns)]


def _encoded(c: ColumnInfo) -> pb.Column:
    return pb.Column(name=c.name, low=c.low, high=c.high, alphabet=c.alphabet or (), pixel=c.pixel or ())


def decode_parties(messages: Iterable[pb.PartyInfo]) -> tuple[PartyInfo, ...]:
    """The parties in ``messages``; a client whose columns are those of the client before names none.

    Raises:
        ProtocolError: as :func:`decode_party`.
    """
    found: list[PartyInfo] = []
    for message in messages:
        alike = found and found[-1].role in _ALIKE and message.role in _ALIKE and not message.columns
        found.append(decode_party(message, found[-1].columns if alike else None))
    return tuple(found)


def decode_party(message: pb.PartyInfo, columns: tuple[ColumnInfo, ...] | None = None) -> PartyInfo:
    """The party in ``message``, whose ``columns`` are known where another has the same.

    Raises:
        ProtocolError: an unknown role, too many columns or classes, a label that is none, a bound or a pixel
            that is none.
    """
    if message.role not in _MEMBERS:
        raise ProtocolError(
            f"party {message.name!r} has role {message.role!r}: expected {', '.join(_MEMBERS)}"
        )
    _check_numbers(message)
    classes = tuple(message.classes)
    if any(map(has_controls, classes)) or len(classes) not in (0, message.n_classes):
        raise ProtocolError(
            f"party {message.name!r} names {len(classes)} of {counted(message.n_classes, 'class')}, or one "
            "with control characters: name each once"
        )
    if not re.fullmatch("([0-9a-f]{64})?", message.mask_key):
        raise ProtocolError(
            f"party {message.name!r} sends a key of masks of {counted(len(message.mask_key), 'character')}: "
            "64 hexadecimal digits are due, or none"
        )
    if len(message.categories) not in (0, len(message.columns or columns or ())) or not all(
        re.fullmatch("([0-9a-f]{16})?", digest) for digest in message.categories
    ):
        raise ProtocolError(
            f"party {message.name!r} sends {counted(len(message.categories), 'digest')} of categories: 16 "
            "hexadecimal digits or none are due of each column, or nothing"
        )
    info = PartyInfo(
        message.name,
        Role(message.role),
        columns=_columns(message) if columns is None else columns,
        n_classes=message.n_classes,
        label=_label(message),
        classes=classes,
        train_rows=message.train_rows,
        predict_rows=message.predict_rows,
        mask_key=message.mask_key,
        categories=tuple(message.categories),
        signature=_signature(message),
    )
    if info.role in _ALIKE and not info.columns:  # else the next to read it takes another's
        raise ProtocolError(f"client {info.name!r} has no columns: each has its own, at least one")
    return info


def _columns(message: pb.PartyInfo) -> tuple[ColumnInfo, ...]:
    columns, problem = _columns_in(pb.PartyInfo(columns=message.columns).SerializeToString())
    if problem:
        raise ProtocolError(f"columns of party {message.name!r}: {problem}")
    return columns


@lru_cache(maxsize=1)
def _columns_in(data: bytes) -> tuple[tuple[ColumnInfo, ...], str]:
    """The columns in the bytes of a message, and what is wrong with all; those of the client before stay."""
    columns = tuple(map(_column, pb.PartyInfo.FromString(data).columns))
    return columns, too_wide(columns)


def _check_numbers(message: pb.PartyInfo) -> None:
    if not 0 <= message.n_classes <= MAX_CLASSES:
        raise ProtocolError(
            f"party {message.name!r} announces {counted(message.n_classes, 'class')}: from 0 to "
            f"{MAX_CLASSES} can be learned"
        )
    if len(message.columns) > MAX_COLUMNS:
        raise ProtocolError(
            f"party {message.name!r} announces {counted(len(message.columns), 'column')}: up to "
            f"{MAX_COLUMNS} are learned from"
        )
    if min(message.train_rows, message.predict_rows) < 0:
        raise ProtocolError(f"party {message.name!r} announces a negative number of rows: count from 0")


def _label(message: pb.PartyInfo) -> ColumnInfo | None:
    if not message.HasField("label"):
        return None
    label = _column(message.label)
    bounded = label.low is not None and label.high is not None and 0 < label.high - label.low < math.inf
    if not bounded or label != ColumnInfo(label.name, label.low, label.high) or message.n_classes != 1:
        raise ProtocolError(
            f"party {message.name!r} announces {counted(message.n_classes, 'class')} and the numeric label "
            f"{label.name!r} from {label.low} to {label.high}: one number with bounds is due"
        )
    return label


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
        alphabet=tuple(message.alphabet) or None,
        pixel=cast("Pixel", tuple(message.pixel)) if message.pixel else None,
    )
