"""Keys, certificates and requests, drawn for parties and operators."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from vflens.errors import ConfigError, StorageError
from vflens.services.certificates.owner import CertificateOwner, owner
from vflens.services.certificates.read import described
from vflens.services.certificates.trust import add_trust
from vflens.storage.private import exposure, owner_only
from vflens.types import Document, Role
from vflens.wire.tls.issue import draw_authority, draw_key, request, self_signed, write_key, write_public
from vflens.wire.tls.subject import UNREADABLE, Subject, federation_name
from vflens.wire.tls.trust import pem_text, read_certificates


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
            write_public(file, self_signed(kept_key(one.tls.key), one.subject))
        for one in owners if out is None else ():
            add_trust(one, [a.tls.certificate for a in owners if _are_peers(one, a)])
    return [described(read_certificates(file)[0], file) for file in files]


def make_request(place: Path, federation: str | None = None) -> Path:
    """Write the request for the owner's certificate beside it, for an authority to sign.

    Raises:
        ConfigError, StorageError: as :func:`init`.
    """
    one = owner(place, federation)
    file = one.tls.certificate.with_suffix(".csr")
    with owner_only():
        write_public(file, request(kept_key(one.tls.key), one.subject))
    return file


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
            key = kept_key(folder / "key.pem")
            certificate = authority.issue(key.public_key(), Subject(federation, role, party))
            write_public(folder / "certificate.pem", certificate)
            write_public(folder / "authority.pem", authority.certificate)


def kept_key(file: Path) -> ec.EllipticCurvePrivateKey:
    """The key in ``file``, drawn if there is none."""
    try:
        if not file.exists():
            write_key(file, draw_key())
    except OSError as error:
        raise StorageError(
            f"key {file} cannot be written ({error.strerror}): give a path of your own"
        ) from error
    return read_key(file)


def read_key(file: Path) -> ec.EllipticCurvePrivateKey:
    """The key in ``file``, for its owner alone.

    Raises:
        ConfigError: it cannot be read, or used; or others can read it.
    """
    try:
        open_to, data = exposure(file, 0o600), pem_text(file)
    except OSError as error:
        raise ConfigError(f"key {file} cannot be read ({error.strerror}): check the path") from error
    if open_to:
        raise ConfigError(f"key {file} {open_to}; if others could copy it, remove it and draw another")
    try:
        key = serialization.load_pem_private_key(data, password=None)
    except UNREADABLE as error:
        raise ConfigError(f"key {file} is no private key in PEM without a password ({error})") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ConfigError(f"key {file} is no P-256 key: request its certificate with the tools that drew it")
    return key


def _are_peers(one: CertificateOwner, other: CertificateOwner) -> bool:
    operates = {one.role, other.role} == {Role.OPERATOR, Role.ACTIVE}
    return one.peers.get(other.name) == other.role or operates
