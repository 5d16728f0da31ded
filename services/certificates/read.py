"""What certificates say, for people to compare, and what peers make of them."""

from pathlib import Path

from cryptography import x509

from vflens.config import PartyConfig
from vflens.errors import AccessError
from vflens.services.certificates.owner import configured, owner
from vflens.services.identity import check_trust, counterpart
from vflens.types import Document, Role
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


def check(file: Path) -> list[Document]:
    """Try the certificates of a party's configuration on every peer: accepted, absent, or why not.

    Raises:
        ConfigError: the party's own certificate, key or trust cannot be used.
    """
    config, _ = configured(file)
    check_trust(config)
    return [
        {"peer": peer.name, "address": peer.address, **_tried(peer.name, peer.role, peer.address, config)}
        for peer in config.peers
    ]


def _tried(name: str, role: Role, address: str, config: PartyConfig) -> Document:
    tls = counterpart(name, role, config)
    try:
        return {"state": "accepted" if tls is None or tls.reaches(address) else "absent", "reason": ""}
    except AccessError as error:
        return {"state": "refused", "reason": str(error)}
