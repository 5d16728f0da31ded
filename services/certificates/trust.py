"""Certificates of peers and of authorities, taken into an owner's trust."""

import datetime
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509

from vflens.config import OPERATOR
from vflens.errors import ConfigError
from vflens.services.certificates.owner import CertificateOwner, owner
from vflens.services.certificates.read import described
from vflens.storage.private import owner_only
from vflens.types import Document, Role
from vflens.wire.tls.issue import fingerprint, pem, write_public
from vflens.wire.tls.subject import Subject
from vflens.wire.tls.trust import check_root, read_certificates


def trust(place: Path, files: Sequence[Path]) -> list[Document]:
    """Let an owner trust the certificates in ``files``: its peers' own, or an authority's.

    Raises:
        ConfigError: one names no peer of its federation, has ended, or is neither.
        StorageError: they cannot be kept.
    """
    with owner_only():
        return add_trust(owner(place), files)


def add_trust(one: CertificateOwner, files: Sequence[Path]) -> list[Document]:
    """Do what :func:`trust` does, for the owner ``one``."""
    added = []
    for file in files:
        for certificate in read_certificates(file):
            subject = check_root(certificate, file)
            _check_pin(one, subject, certificate, file)
            _keep(one.tls.trust, certificate, subject)
            added.append(described(certificate, file))
    return added


def _check_pin(
    one: CertificateOwner, subject: Subject | None, certificate: x509.Certificate, file: Path
) -> None:
    """Refuse a pin of no use to ``one``."""
    if certificate.not_valid_after_utc < datetime.datetime.now(datetime.UTC):
        raise ConfigError(f"{file} ended on {certificate.not_valid_after_utc:%Y-%m-%d}: ask for a new one")
    if subject is None:
        return
    known = {**one.peers, OPERATOR: Role.OPERATOR}
    if one.role is Role.CLIENT and subject.role is Role.CLIENT:  # it signs its key of masks
        known[subject.party] = Role.CLIENT
    if one.role is Role.OPERATOR:
        known = {subject.party: Role.ACTIVE}
    if subject.federation != one.federation or known.get(subject.party) != subject.role:
        raise ConfigError(
            f"{file} is the certificate of {subject}, no peer of {one.subject}: compare federation, role and "
            "name in both configurations"
        )


def _keep(place: Path, certificate: x509.Certificate, subject: Subject | None) -> None:
    """Put ``certificate`` into the file or folder ``place``, once."""
    if place.suffix != ".pem":
        name = "authority" if subject is None else subject.party
        write_public(place / f"{name}-{fingerprint(certificate)[:8]}.pem", certificate)
        return
    kept = read_certificates(place) if place.exists() else []
    if pem(certificate) not in map(pem, kept):
        write_public(place, *kept, certificate)
