"""The certificates that a party trusts: pins of its peers, and authorities."""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from errno import EFBIG
from itertools import pairwise
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from vflens.errors import ConfigError
from vflens.storage.regular import opened
from vflens.wire.sockets import doubt
from vflens.wire.tls.subject import UNREADABLE, Subject, subject_of

_MOST_BYTES = 1 << 20  # of a file of certificates: some hundred


@dataclass(frozen=True)
class Trust:
    """``authorities`` vouch for any name; a pin is a self-signed certificate that stands for its own name
    alone. ``problem`` says what else there is that nobody is trusted for, and why; "" if nothing.
    """

    authorities: tuple[x509.Certificate, ...] = ()
    pins: Mapping[Subject, tuple[x509.Certificate, ...]] = field(default_factory=dict)
    problem: str = ""

    def roots(self, subject: Subject) -> tuple[x509.Certificate, ...]:
        """What a certificate of ``subject`` may lead to: the pin of another party is not among them."""
        return (*self.pins.get(subject, ()), *self.authorities)

    def all_roots(self) -> tuple[x509.Certificate, ...]:
        """All certificates."""
        return (*self.authorities, *(c for pins in self.pins.values() for c in pins))


def load_trust(path: Path, federation: str) -> Trust:
    """The certificates in ``path``, a PEM file or a folder of files ``*.pem``, of a party of ``federation``.

    What cannot be used is left out and named: a file that does not load must not keep a withdrawn one in
    force.
    """
    authorities: list[x509.Certificate] = []
    pins: dict[Subject, tuple[x509.Certificate, ...]] = {}
    problems: list[str] = []
    files = files_of(path)
    for file in files:
        try:
            for certificate, subject in _roots_in(file, federation):
                if subject is None:
                    authorities.append(certificate)
                else:
                    pins[subject] = (*pins.get(subject, ()), certificate)
        except ConfigError as error:
            problems.append(str(error))
    if not files:
        problems.append(f"tls.trust = {path} holds no certificate: add the peers' with: vflens certs trust")
    return Trust(tuple(authorities), pins, "; ".join(problems))


def files_of(path: Path) -> list[Path]:
    """``path`` itself, or the files ``*.pem`` of the folder; none where it cannot be read."""
    with suppress(OSError):  # of a folder above that cannot be read
        return [path] if path.is_file() else sorted(path.glob("*.pem"))
    return []


def _roots_in(file: Path, federation: str) -> list[tuple[x509.Certificate, Subject | None]]:
    """The certificates in ``file``, each with the party that it pins.

    Raises:
        ConfigError: as :func:`read_certificates` and :func:`check_root`; a pin of another federation; a file
            that other users can write.
    """
    check_written_by_owner(file)
    found = [(certificate, check_root(certificate, file)) for certificate in read_certificates(file)]
    for _, pinned in found:
        if pinned is not None and pinned.federation != federation:
            raise ConfigError(
                f"{file} holds the certificate of {pinned}, this party is of federation {federation!r}: "
                "remove the file"
            )
    return found


def check_written_by_owner(file: Path) -> None:
    """Refuse a file that other users could put in the place of the owner's, by its own mode or a folder's.

    Raises:
        ConfigError: names the remedy.
    """
    try:
        reason = doubt(file)
    except OSError as error:
        raise ConfigError(f"certificate {file} cannot be read ({error.strerror}): check the path") from error
    if reason:
        raise ConfigError(f"certificate {file} may be another user's: {reason}")


def read_certificates(file: Path) -> list[x509.Certificate]:
    """All certificates in the PEM ``file``, at least one.

    Raises:
        ConfigError: it cannot be read, or holds none.
    """
    try:
        found = x509.load_pem_x509_certificates(pem_text(file))
        for certificate in found:  # a key of a kind that the library does not know is found here
            certificate.public_key()
    except OSError as error:
        raise ConfigError(f"certificate {file} cannot be read ({error.strerror}): check the path") from error
    except UNREADABLE as error:
        raise ConfigError(f"{file} holds no certificate in PEM: give the file that its owner made") from error
    return found


def pem_text(file: Path) -> bytes:
    """The bytes of ``file``, which must be few.

    Raises:
        OSError: it cannot be read, is too large, or is no regular file: to read a pipe would wait.
    """
    with opened(file) as text:
        found = text.read(_MOST_BYTES + 1)
    if len(found) > _MOST_BYTES:
        raise OSError(EFBIG, os.strerror(EFBIG))
    return found


def check_root(certificate: x509.Certificate, file: Path) -> Subject | None:
    """The party that ``certificate`` of ``file`` pins; None if it is an authority's.

    Raises:
        ConfigError: it is neither. A pin that could sign others would vouch for any name.
    """
    subject, authority = subject_of(certificate), is_authority(certificate)
    if not is_issued_by(certificate, certificate):
        raise ConfigError(
            f"{file} holds a certificate that another one signed: trust the authority's own certificate"
        )
    if subject is not None and not authority:
        return subject
    if subject is None and authority:
        return None
    raise ConfigError(
        f"{file} holds a certificate that is neither a party's nor an authority's: give one that "
        "vflens certs init or sign made, or a root of your own authority"
    )


def is_authority(certificate: x509.Certificate) -> bool:
    """Whether ``certificate`` may sign others."""
    with suppress(*UNREADABLE):
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    return False


def is_issued_by(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    """Whether ``issuer`` signed ``certificate``."""
    with suppress(*UNREADABLE, InvalidSignature):
        certificate.verify_directly_issued_by(issuer)
        return True
    return False


def leads_to(chain: Iterable[x509.Certificate], roots: Iterable[x509.Certificate]) -> bool:
    """Whether each certificate of ``chain`` is signed by the next, and the last one by or equal to one of
    ``roots``.
    """
    links = list(chain)
    signed = all(is_issued_by(a, b) and is_authority(b) for a, b in pairwise(links))
    return signed and any(links[-1] == root or is_issued_by(links[-1], root) for root in roots)
