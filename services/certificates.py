"""What ``vflens certs`` does: certificates drawn, requested, signed, trusted, shown and tried out."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from vflens.config import OPERATOR, MemberConfig, Tls, load_party
from vflens.errors import AccessError, ConfigError, StorageError
from vflens.services.identity import check_trust, counterpart
from vflens.storage.private import exposure, owner_only
from vflens.types import Document, Role
from vflens.wire.tls.issue import (
    Authority,
    draw_authority,
    draw_key,
    fingerprint,
    pem,
    request,
    self_signed,
    write_key,
    write_public,
)
from vflens.wire.tls.subject import Subject, federation_name, subject_of
from vflens.wire.tls.trust import check_root, is_authority, is_issued_by, read_certificates

_WANTED = 'certificate = "tls/certificate.pem", key = "tls/key.pem", trust = "tls/trust"'


@dataclass(frozen=True)
class Owner:
    """Whose certificates: a party's, by its configuration, or an operator's, in a folder of their own."""

    tls: Tls
    name: str
    role: Role
    federation: str
    peers: Mapping[str, Role]

    @property
    def subject(self) -> Subject:
        """Whom the certificate names."""
        return Subject(self.federation, self.role, self.name)


def operator_files(folder: Path) -> Tls:
    """The files of an operator who keeps them in ``folder``."""
    return Tls(certificate=folder / "certificate.pem", key=folder / "key.pem", trust=folder / "trust")


def owner(place: Path, federation: str | None = None) -> Owner:
    """The owner of the configuration ``place``; of a folder, an operator.

    Args:
        place: a party's configuration with ``[tls]``, or an operator's folder.
        federation: the federation's name; None: that of the certificate, else a form of the run's name.

    Raises:
        ConfigError: no configuration, one without ``[tls]``, or no federation for a new operator.
    """
    if place.is_file():
        config = load_party(place)
        if config.tls is None:
            raise ConfigError(f"{place} has no table [tls]: add one with {_WANTED}")
        peers = {peer.name: Role(peer.role) for peer in config.peers}
        named = federation or _federation(config.tls) or federation_name(config.run)
        return Owner(config.tls, config.party, config.role, named, peers)
    tls = operator_files(place)
    chosen = federation or _federation(tls)
    if chosen is None:
        raise ConfigError(
            f"{place} is no configuration of a party; for an operator's folder give --federation too"
        )
    return Owner(tls, OPERATOR, Role.OPERATOR, chosen, {})


def _federation(tls: Tls) -> str | None:
    """The federation of the present certificate, if there is one."""
    subject = subject_of(read_certificates(tls.certificate)[0]) if tls.certificate.exists() else None
    return subject.federation if subject else None


def init(places: Sequence[Path], federation: str | None = None, out: Path | None = None) -> list[Document]:
    """Draw the key and the self-signed certificate of each owner; those given together trust each other.

    A key that is there is kept: with ``out`` its next certificate goes to that file, for the peers to trust
    before it takes the place of the present one.

    Raises:
        ConfigError: a certificate is there, or a place is wrong.
        StorageError: a file cannot be written.
    """
    owners = [owner(place, federation) for place in places]
    if out is not None and len(owners) > 1:
        raise ConfigError("--out is for one certificate: give one configuration")
    files = [out or one.tls.certificate for one in owners]
    for file in files:
        if file.exists():
            raise ConfigError(f"{file} exists: keep it, or draw the next certificate with --out FILE")
    with owner_only():  # they may stand in a run folder
        for one, file in zip(owners, files, strict=True):
            write_public(file, self_signed(_kept_key(one.tls.key), one.subject))
        for one in owners if out is None else ():
            _trust(one, [a.tls.certificate for a in owners if _are_peers(one, a)])
    return [_described(read_certificates(file)[0], file) for file in files]


def make_request(place: Path, federation: str | None = None) -> Path:
    """Write the request for the owner's certificate beside it, for an authority to sign.

    Raises:
        ConfigError, StorageError: as :func:`init`.
    """
    one = owner(place, federation)
    file = one.tls.certificate.with_suffix(".csr")
    with owner_only():
        write_public(file, request(_kept_key(one.tls.key), one.subject))
    return file


def sign(requests: Sequence[Path], folder: Path) -> list[Document]:
    """Sign each request with the authority in ``folder``, which is drawn where there is none; the
    certificates stand beside the requests, as ``.pem``.

    Raises:
        ConfigError: a file is no request of a party of the authority's federation.
    """
    read = {file: _read_request(file) for file in requests}
    with owner_only():
        authority = _authority(folder, next(iter(read.values()))[1].federation)
    home = authority.certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)[0].value
    for file, (_, subject) in read.items():
        if subject.federation != home:
            raise ConfigError(f"{file} is of federation {subject.federation!r}, the authority of {home!r}")
    signed = []
    for file, (key, subject) in read.items():
        certificate = authority.issue(key, subject)
        write_public(file.with_suffix(".pem"), certificate)
        signed.append(_described(certificate, file.with_suffix(".pem")))
    return signed


def trust(place: Path, files: Sequence[Path]) -> list[Document]:
    """Let an owner trust the certificates in ``files``: its peers' own, or an authority's.

    Raises:
        ConfigError: one names no peer of its federation, has ended, or is neither.
        StorageError: they cannot be kept.
    """
    with owner_only():
        return _trust(owner(place), files)


def show(place: Path) -> list[Document]:
    """What the owner's certificates say, first its own, then the trusted ones; or those of a PEM file."""
    if place.suffix in (".pem", ".crt"):
        return [_described(certificate, place) for certificate in read_certificates(place)]
    one = owner(place)
    trusted = sorted(one.tls.trust.glob("*.pem")) if one.tls.trust.is_dir() else [one.tls.trust]
    files = [one.tls.certificate, *(file for file in trusted if file.exists())]
    return [_described(certificate, file) for file in files for certificate in read_certificates(file)]


def check(file: Path) -> list[Document]:
    """Try the certificates of a party's configuration on every peer: accepted, absent, or why not.

    Raises:
        ConfigError: the party's own certificate, key or trust cannot be used.
    """
    config = load_party(file)
    if config.tls is None:
        raise ConfigError(f"{file} has no table [tls]: add one with {_WANTED}")
    check_trust(config)
    return [
        {"peer": peer.name, "address": peer.address, **_tried(peer.name, peer.role, peer.address, config)}
        for peer in config.peers
    ]


def deal_certificates(name: str, roles: Mapping[str, Role], homes: Mapping[str, Path]) -> None:
    """Draw each party's key and certificate into ``tls`` of its folder.

    The authority that signs them signs no others: its key is not kept.

    Args:
        name: the experiment's; the federation is named after it.
        roles: of all parties.
        homes: their folders.

    Raises:
        StorageError: they cannot be written.
    """
    federation = federation_name(name)
    authority = draw_authority(federation)
    for party, role in roles.items():
        folder = homes[party] / "tls"
        with owner_only():
            key = _kept_key(folder / "key.pem")
            certificate = authority.issue(key.public_key(), Subject(federation, role, party))
            write_public(folder / "certificate.pem", certificate)
            write_public(folder / "authority.pem", authority.certificate)


def _tried(name: str, role: Role, address: str, config: MemberConfig) -> Document:
    tls = counterpart(name, role, config)
    try:
        return {"state": "accepted" if tls is None or tls.reaches(address) else "absent", "reason": ""}
    except AccessError as error:
        return {"state": "refused", "reason": str(error)}


def _kept_key(file: Path) -> ec.EllipticCurvePrivateKey:
    """The key in ``file``, drawn if there is none."""
    try:
        if not file.exists():
            write_key(file, draw_key())
        open_to, data = exposure(file, 0o600), file.read_bytes()
    except OSError as error:
        raise StorageError(
            f"key {file} cannot be written or read ({error.strerror}): give a path of your own"
        ) from error
    if open_to:
        raise ConfigError(f"key {file} {open_to}; if others could copy it, remove it and draw another")
    try:
        key = serialization.load_pem_private_key(data, password=None)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"key {file} is no private key in PEM without a password ({error})") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ConfigError(f"key {file} is no P-256 key: request its certificate with the tools that drew it")
    return key


def _authority(folder: Path, federation: str) -> Authority:
    """The authority in ``folder``; a new one of ``federation`` where there is none."""
    file, key_file = folder / "authority.pem", folder / "authority.key"
    if not file.exists() and not key_file.exists():
        drawn = draw_authority(federation)
        try:
            write_key(key_file, drawn.key)
        except OSError as error:
            raise StorageError(f"{key_file} cannot be written ({error.strerror}): choose another") from error
        write_public(file, drawn.certificate)
    return Authority(read_certificates(file)[0], _kept_key(key_file))


def _read_request(file: Path) -> tuple[ec.EllipticCurvePublicKey, Subject]:
    """The key and the party of the request in ``file``."""
    try:
        found = x509.load_pem_x509_csr(file.read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{file} holds no request ({error}): give what vflens certs request wrote"
        ) from error
    key, subject = found.public_key(), subject_of(found)
    if subject is None or not found.is_signature_valid or not isinstance(key, ec.EllipticCurvePublicKey):
        raise ConfigError(f"{file} is no request of a party: give what vflens certs request wrote")
    return key, subject


def _are_peers(one: Owner, other: Owner) -> bool:
    operates = {one.role, other.role} == {Role.OPERATOR, Role.ACTIVE}
    return one.peers.get(other.name) == other.role or operates


def _trust(one: Owner, files: Sequence[Path]) -> list[Document]:
    added = []
    for file in files:
        for certificate in read_certificates(file):
            subject = check_root(certificate, file)
            _check_pin(one, subject, certificate, file)
            _keep(one.tls.trust, certificate, subject)
            added.append(_described(certificate, file))
    return added


def _check_pin(one: Owner, subject: Subject | None, certificate: x509.Certificate, file: Path) -> None:
    """Refuse a pin of no use to ``one``."""
    if certificate.not_valid_after_utc < datetime.datetime.now(datetime.UTC):
        raise ConfigError(f"{file} ended on {certificate.not_valid_after_utc:%Y-%m-%d}: ask for a new one")
    if subject is None:
        return
    known = {**one.peers, OPERATOR: Role.OPERATOR}
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


def _described(certificate: x509.Certificate, file: Path) -> Document:
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
