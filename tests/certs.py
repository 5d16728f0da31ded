"""Certificates for tests: parties of one federation, each with its own files."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

import pytest

from vflens.config import Tls
from vflens.member.member import Member
from vflens.storage.private import owner_only
from vflens.types import Role
from vflens.wire.tls.identity import Identity
from vflens.wire.tls.issue import Authority, draw_authority, draw_key, self_signed, write_key, write_public
from vflens.wire.tls.signing import TlsSigner
from vflens.wire.tls.subject import Subject

FEDERATION = "hospitals"


def subject(name: str, role: Role, federation: str = FEDERATION) -> Subject:
    return Subject(federation, role, name)


def files(
    folder: Path,
    whom: Subject,
    authority: Authority | None = None,
    *,
    days: float = 90,
    start: datetime | None = None,
) -> Tls:
    """A key and a certificate of ``whom`` in ``folder``, self-signed unless an ``authority`` signs it; its
    trust holds the authority, or nothing yet.
    """
    key = draw_key()
    tls = Tls(certificate=folder / "certificate.pem", key=folder / "key.pem", trust=folder / "trust")
    with owner_only():
        write_key(tls.key, key)
    if authority is None:
        write_public(tls.certificate, self_signed(key, whom, days, start))
        tls.trust.mkdir(exist_ok=True)
    else:
        write_public(tls.certificate, authority.issue(key.public_key(), whom, days, start))
        write_public(tls.trust / "authority.pem", authority.certificate)
    return tls


def pin(tls: Tls, others: Iterable[Tls]) -> None:
    """Let the owner of ``tls`` trust the certificates of ``others``."""
    for number, other in enumerate(others):
        (tls.trust / f"{other.certificate.parent.name}-{number}.pem").write_bytes(
            other.certificate.read_bytes()
        )


def signer(folder: Path, name: str, role: Role, authority: Authority) -> TlsSigner:
    return TlsSigner(Identity(files(folder, subject(name, role), authority), name, role))


def give_certificates(members: Iterable[Member], home: Path, authority: Authority) -> None:
    for member in members:
        member.signer = signer(home / member.name, member.name, member.role, authority)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return draw_authority(FEDERATION)
