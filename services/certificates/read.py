"""What certificates say, for people to compare."""

from pathlib import Path

from cryptography import x509

from vflens.services.certificates.owner import owner
from vflens.types import Document
from vflens.wire.tls.issue import fingerprint
from vflens.wire.tls.subject import subject_of
from vflens.wire.tls.trust import is_authority, is_issued_by, read_certificates


def show(place: Path) -> list[Document]:
    """What the owner's certificates say, first its own, then the trusted ones; or those of a PEM file."""
    if place.suffix in (".pem", ".crt"):
        return [described(certificate, place) for certificate in read_certificates(place)]
    one = owner(place)
    trusted = sorted(one.tls.trust.glob("*.pem")) if one.tls.trust.is_dir() else [one.tls.trust]
    files = [one.tls.certificate, *(file for file in trusted if file.exists())]
    return [described(certificate, file) for file in files for certificate in read_certificates(file)]


def described(certificate: x509.Certificate, file: Path) -> Document:
    """What people compare."""
    subject = subject_of(certificate)
    kind = "authority" if is_authority(certificate) else "signed"
    if kind == "signed" and is_issued_by(certificate, certificate):
        kind = "self-signed"
    return {
        "file": str(file),
        "kind": kind,
        "party": subject.party if subject else None,
        "role": str(subject.role) if subject else None,
        "federation": subject.federation if subject else None,
        "begins": f"{certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC",
        "ends": f"{certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC",
        "fingerprint": fingerprint(certificate),
    }
