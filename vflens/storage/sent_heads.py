"""The heads that parties sent of their logs, with their signatures (``heads.json``)."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from vflens.errors import StorageError
from vflens.names import HEX_64_OR_NONE
from vflens.storage.files import write_whole
from vflens.storage.heads import LOGS, Heads, LogHead, from_json, to_json
from vflens.storage.json_file import in_words
from vflens.storage.regular import read_text
from vflens.types import Signature
from vflens.words import counted

_MOST = 16_384  # characters of certificates: a chain of four takes 4,000
DIGEST_BYTES = 32


@dataclass(frozen=True)
class SentHeads:
    """The ``heads`` of a party's logs, the digest of the ``federation`` that it was told of, and the
    ``nonce`` of the run; with its ``signature`` of all if it has a certificate.
    """

    heads: Heads = field(default_factory=dict)
    federation: bytes = b""
    signature: Signature | None = None
    nonce: str = ""  # an earlier release has none

    @cached_property
    def in_json(self) -> str:
        """What ``heads.json`` says of it: clients in one process keep the heads of all."""
        signed = {} if self.signature is None else {"signature": self.signature}
        nonce = {"nonce": self.nonce} if self.nonce else {}
        return json.dumps({**to_json(self.heads), "federation": self.federation.hex(), **nonce, **signed})


class _Sent(BaseModel):
    """What ``heads.json`` says of one party; an earlier release wrote heads alone."""

    model_config = ConfigDict(extra="forbid")

    transcript: LogHead | None = None
    released: LogHead | None = None
    digests: LogHead | None = None
    federation: str = Field("", pattern=HEX_64_OR_NONE)
    nonce: str = Field("", pattern=HEX_64_OR_NONE)
    signature: Signature | None = None

    def read(self) -> SentHeads:
        """The same as a party sent it."""
        heads = from_json({name: head for name in LOGS if (head := getattr(self, name)) is not None})
        return SentHeads(heads, bytes.fromhex(self.federation), self.signature, self.nonce)


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
            f"{file} holds no heads that can be read ({in_words(error)}): bring it back as it was, or remove "
            "it"
        ) from error


def parsed(text: str) -> dict[str, SentHeads]:
    """What a file ``heads.json`` with ``text`` says.

    Raises:
        ValueError: it is none.
    """
    written = TypeAdapter(dict[str, _Sent]).validate_json(text, strict=True)
    return {party: checked_sent(sent.read()) for party, sent in written.items()}


def write_received(folder: Path, heads: Mapping[str, SentHeads]) -> None:
    """Write ``heads.json`` of what other parties sent.

    Raises:
        StorageError: it cannot be written.
    """
    parties = ", ".join(f"{json.dumps(party)}: {sent.in_json}" for party, sent in heads.items())
    write_whole(folder / "heads.json", f"{{{parties}}}".encode())


def checked_sent(sent: SentHeads) -> SentHeads:
    """``sent``, if its digest and signature have the form of some.

    Raises:
        ValueError: they have not.
    """
    if len(sent.federation) not in (0, DIGEST_BYTES):
        raise ValueError(
            f"{counted(len(sent.federation), 'byte is', many='bytes are')} no digest of a federation"
        )
    check_nonce(sent.nonce)
    if sent.signature is not None:
        check_form(sent.signature)
    return sent


def check_nonce(nonce: object) -> None:
    """Refuse what is neither the nonce of a run nor "".

    Raises:
        ValueError: saying so.
    """
    if not isinstance(nonce, str):
        raise ValueError(f"a nonce of type {type(nonce).__name__}: 64 hexadecimal digits are due")
    if not re.fullmatch("([0-9a-f]{64})?", nonce):
        raise ValueError(f"a nonce of {counted(len(nonce), 'character')}: 64 hexadecimal digits are due")


def check_form(signature: Signature) -> None:
    """Refuse a ``signature`` that is none, or too long.

    Raises:
        ValueError: saying so.
    """
    if not re.fullmatch("([0-9a-f]{2})*", signature.value):
        raise ValueError("a signature is written in hexadecimal digits")
    if (
        len(signature.value) > _MOST
        or len(signature.certificates) > _MOST
        or not signature.certificates.isascii()
    ):
        raise ValueError("certificates and signature are too long, or no text in ASCII")
