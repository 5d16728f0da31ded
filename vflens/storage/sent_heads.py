"""The heads that parties sent of their logs, with their signatures (``heads.json``)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vflens.errors import StorageError
from vflens.storage.files import write_whole
from vflens.storage.heads import Heads, from_json, to_json
from vflens.storage.json_file import json_object
from vflens.storage.regular import read_text
from vflens.types import Signature

_MOST = 16_384  # characters of certificates: a chain of four takes 4,000
DIGEST_BYTES = 32


@dataclass(frozen=True)
class SentHeads:
    """The ``heads`` of a party's logs, and the digest of the ``federation`` that it was told of; with its
    ``signature`` of both if it has a certificate.
    """

    heads: Heads = field(default_factory=dict)
    federation: bytes = b""
    signature: Signature | None = None


def received_in(folder: Path) -> dict[str, SentHeads]:
    """Party → what it sent; none without ``heads.json``.

    Raises:
        StorageError: it was damaged.
    """
    file = folder / "heads.json"
    try:
        return parsed(read_text(file)) if file.exists() else {}
    except (OSError, ValueError) as error:
        raise StorageError(
            f"{file} holds no heads that can be read ({error}): bring it back as it was, or remove it"
        ) from error


def parsed(text: str) -> dict[str, SentHeads]:
    """What a file ``heads.json`` with ``text`` says.

    Raises:
        ValueError: it is none.
    """
    try:
        return {party: _from_json(sent) for party, sent in json_object(text).items()}
    except (TypeError, KeyError, AttributeError, OverflowError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def keep_received(folder: Path, heads: Mapping[str, SentHeads]) -> None:
    """Add the ``heads`` of other parties to ``heads.json``.

    Raises:
        StorageError: it cannot be written, or earlier heads in it cannot be read.
    """
    known = received_in(folder) | dict(heads)
    document = {party: _to_json(sent) for party, sent in known.items()}
    write_whole(folder / "heads.json", json.dumps(document).encode())


def checked_sent(sent: SentHeads) -> SentHeads:
    """``sent``, if its digest and signature have the form of some.

    Raises:
        ValueError: they have not.
    """
    if len(sent.federation) not in (0, DIGEST_BYTES):
        raise ValueError(f"{len(sent.federation)} bytes are no digest of a federation")
    if sent.signature is not None:
        check_form(sent.signature)
    return sent


def check_form(signature: Signature) -> None:
    """Refuse a ``signature`` that is none, or too long.

    Raises:
        ValueError: saying so.
    """
    bytes.fromhex(signature.value)
    if (
        len(signature.value) > _MOST
        or len(signature.certificates) > _MOST
        or not signature.certificates.isascii()
    ):
        raise ValueError("certificates and signature are too long, or no text in ASCII")


def _to_json(sent: SentHeads) -> dict[str, Any]:
    signed = {} if sent.signature is None else {"signature": sent.signature}
    return {**to_json(sent.heads), "federation": sent.federation.hex(), **signed}


def _from_json(data: dict[str, Any]) -> SentHeads:
    """An earlier release wrote heads alone."""
    heads = from_json({name: head for name, head in data.items() if name not in ("federation", "signature")})
    signature = Signature(*map(str, data["signature"])) if "signature" in data else None
    return checked_sent(SentHeads(heads, bytes.fromhex(data.get("federation", "")), signature))
