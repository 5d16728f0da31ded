"""Whose certificates: a party's, by its configuration, or an operator's, in a folder of their own."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vflens.config import OPERATOR, PartyConfig, Tls, load_party
from vflens.errors import ConfigError
from vflens.types import Role
from vflens.wire.tls.subject import Subject, federation_name, subject_of
from vflens.wire.tls.trust import read_certificates

_WANTED = 'certificate = "tls/certificate.pem", key = "tls/key.pem", trust = "tls/trust"'


@dataclass(frozen=True)
class CertificateOwner:
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


def configured(file: Path) -> tuple[PartyConfig, Tls]:
    """The party's configuration in ``file``, and its table ``[tls]``.

    Raises:
        ConfigError: no configuration of a party, or one without ``[tls]``.
    """
    config = load_party(file)
    if config.tls is None:
        raise ConfigError(f"{file} has no table [tls]: add one with {_WANTED}")
    return config, config.tls


def operator_files(folder: Path) -> Tls:
    """The files of an operator who keeps them in ``folder``."""
    return Tls(certificate=folder / "certificate.pem", key=folder / "key.pem", trust=folder / "trust")


def owner(place: Path, federation: str | None = None) -> CertificateOwner:
    """The owner of the configuration ``place``; of a folder, an operator.

    Args:
        place: a party's configuration with ``[tls]``, or an operator's folder.
        federation: the federation's name; None: that of the certificate, else a form of the run's name.

    Raises:
        ConfigError: no configuration, one without ``[tls]``, or no federation for a new operator.
    """
    if place.is_file():
        config, tls = configured(place)
        peers = {peer.name: peer.role for peer in config.peers}
        named = federation or _federation(tls) or federation_name(config.run)
        return CertificateOwner(tls, config.party, config.role, named, peers=peers)
    tls = operator_files(place)
    chosen = federation or _federation(tls)
    if chosen is None:
        raise ConfigError(
            f"{place} is no configuration of a party; for an operator's folder give --federation too"
        )
    return CertificateOwner(tls, OPERATOR, Role.OPERATOR, chosen, peers={})


def _federation(tls: Tls) -> str | None:
    """The federation of the present certificate, if there is one."""
    subject = subject_of(read_certificates(tls.certificate)[0]) if tls.certificate.exists() else None
    return subject.federation if subject else None
