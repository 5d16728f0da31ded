"""How many parts a message has, read off its bytes before the library builds anything of them.

Two bytes on the wire make an empty message of seventy bytes in memory, one byte makes a number of eight. A
message of raw bytes, as tensors and rows travel, has few parts whatever its size.
"""

from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from vflens.errors import ProtocolError
from vflens.words import counted

MOST = 1_000_000  # parts: fields, columns, numbers of an alphabet
_SMALL = 1 << 20  # bytes: what so few can make needs no look
_FIXED = {1: 8, 5: 4}  # kind of a field → its bytes
_WIDTHS = {FieldDescriptor.CPPTYPE_DOUBLE: 8, FieldDescriptor.CPPTYPE_FLOAT: 4}


def check_parts(data: bytes, message: type[Any]) -> None:
    """Refuse ``data`` that would make a ``message`` of more than :data:`MOST` parts.

    Raises:
        ProtocolError: it would, or its bytes are cut short.
    """
    if len(data) <= _SMALL:
        return
    try:
        parts = _parts(data, 0, len(data), message.DESCRIPTOR.fields_by_number, 0)
    except IndexError:
        raise ProtocolError(
            f"{counted(len(data), 'byte is', many='bytes are')} no {message.__name__}: use a peer of the "
            "same version"
        ) from None
    if parts > MOST:
        raise ProtocolError(
            f"a {message.__name__} of {counted(len(data), 'byte')} has more than {MOST} parts: send fewer "
            "columns and values"
        )


def _parts(data: bytes, at: int, end: int, fields: Any, parts: int) -> int:
    """``parts`` and those of the message in ``data[at:end]``; beyond :data:`MOST` no further ones are
    counted.
    """
    while at < end and parts <= MOST:
        key, at = _varint(data, at)
        kind, parts = key & 7, parts + 1
        if kind in _FIXED:
            at += _FIXED[kind]
            continue
        size, at = _varint(data, at)
        if kind == 2:
            field, at = fields.get(key >> 3), at + size
            parts = _inside(data, at - size, at, field, parts)
        elif kind:
            raise IndexError
    if at > end:
        raise IndexError
    return parts


def _inside(data: bytes, at: int, end: int, field: Any, parts: int) -> int:
    """``parts`` and those of ``data[at:end]``, the value of ``field``: a message, numbers in one piece, or
    raw bytes.
    """
    if field is None or field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return parts
    if field.message_type is not None:
        return _parts(data, at, end, field.message_type.fields_by_number, parts)
    return parts + (end - at) // _WIDTHS.get(field.cpp_type, 1)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins at ``at``, and where it ends.

    Raises:
        IndexError: it does not end.
    """
    byte = data[at]
    value, shift, at = byte & 127, 7, at + 1
    while byte > 127:
        byte = data[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if shift > 70:
            raise IndexError
    return value, at
