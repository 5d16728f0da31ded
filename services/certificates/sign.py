"""Requests signed by an authority of one's own."""

import datetime
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from vflens.errors import ConfigError, StorageError
from vflens.services.certificates.make import read_key
from vflens.services.certificates.read import described
from vflens.storage.private import owner_only
from vflens.types import Document
from vflens.wire.tls.issue import Authority, draw_authority, write_key, write_public
from vflens.wire.tls.subject import UNREADABLE, Subject, subject_of
from vflens.wire.tls.trust import is_authority, pem_text, read_certificates


def sign(requests: Sequence[Path], folder: Path) -> list[Document]:
    """Sign each request with the authority in ``folder``, which is drawn where there is none; the
    certificates stand beside the requests, as ``.pem``.

    Raises:
        ConfigError: a file is no request of a party of the authority's federation.
    """
    read = {file: _read_request(file) for file in requests}
    with owner_only():
        authority = _authority(folder, next(iter(read.values()))[1].federation)
    home = _home(authority.certificate)
    for file, (_, subject) in read.items():
        if subject.federation != home:
            raise ConfigError(f"{file} is of federation {subject.federation!r}, the authority of {home!r}")
    signed = []
    for file, (key, subject) in read.items():
        certificate = authority.issue(key, subject)
        write_public(file.with_suffix(".pem"), certificate)
        signed.append(described(certificate, file.with_suffix(".pem")))
    return signed


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
    authority = Authority(read_certificates(file)[0], read_key(key_file))
    _check_authority(authority, file)
    return authority


def _check_authority(authority: Authority, file: Path) -> None:
    """Refuse to sign what no peer would accept."""
    certificate = authority.certificate
    if not is_authority(certificate) or not _home(certificate):
        raise ConfigError(f"{file} is no authority of a federation: give the folder that certs sign made")
    if certificate.public_key() != authority.key.public_key():
        raise ConfigError(f"{file} and {file.with_suffix('.key')} do not fit: bring back the pair")
    if certificate.not_valid_after_utc < datetime.datetime.now(datetime.UTC):
        raise ConfigError(
            f"{file} ended on {certificate.not_valid_after_utc:%Y-%m-%d}: draw another authority with certs "
            "sign in an empty folder, and let every party trust it"
        )


def _home(certificate: x509.Certificate) -> str:
    """The federation of an authority's ``certificate``, "" without one."""
    found = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    return str(found[0].value) if found else ""


def _read_request(file: Path) -> tuple[ec.EllipticCurvePublicKey, Subject]:
    """The key and the party of the request in ``file``."""
    try:
        found = x509.load_pem_x509_csr(pem_text(file))
        key, subject, is_signed = found.public_key(), subject_of(found), found.is_signature_valid
    except (OSError, *UNREADABLE) as error:
        raise ConfigError(
            f"{file} holds no request ({error}): give what vflens certs request wrote"
        ) from error
    if subject is None or not is_signed or not isinstance(key, ec.EllipticCurvePublicKey):
        raise ConfigError(f"{file} is no request of a party: give what vflens certs request wrote")
    return key, subject
