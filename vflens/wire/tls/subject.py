"""Whom a certificate names: a party in its role, in one federation."""

import re
from contextlib import suppress
from dataclasses import dataclass

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm

from vflens.errors import ConfigError
from vflens.types import Role

_FEDERATION = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_URI = re.compile(rf"spiffe://({_FEDERATION.pattern})/([a-z]+)/([A-Za-z0-9][A-Za-z0-9_.-]*)")
_PLAIN = re.compile(r"[^a-z0-9-]")
#: What the library raises for parts of a certificate that it cannot read: it reads each when it is asked for.
UNREADABLE = (
    ValueError, TypeError, UnsupportedAlgorithm,
    x509.InvalidVersion, x509.ExtensionNotFound, x509.DuplicateExtension, x509.UnsupportedGeneralNameType,
)  # fmt: skip


@dataclass(frozen=True)
class Subject:
    """``party`` in its ``role`` in ``federation``.

    Raises:
        ConfigError: ``federation`` is no label of a host name: lower-case letters, digits and "-".
    """

    federation: str
    role: Role
    party: str

    def __post_init__(self) -> None:
        if not _FEDERATION.fullmatch(self.federation):
            raise ConfigError(
                f"federation {self.federation!r}: give 1 to 63 lower-case letters, digits or '-', a letter "
                "or digit first and last"
            )

    @property
    def uri(self) -> str:
        """The name that a server reads; capitals count."""
        return f"spiffe://{self.federation}/{self.role}/{self.party}"

    @property
    def dns(self) -> str:
        """The name that a client checks. Host names ignore capitals and split at dots, so such characters of
        the party's name are written as ``_`` and their code: two parties never share a name.
        """
        label = _PLAIN.sub(lambda found: f"_{ord(found[0]):02x}", self.party)
        return f"{label}.{self.role}.{self.federation}.vflens"

    def __str__(self) -> str:
        return f"{self.role} {self.party!r} of federation {self.federation!r}"


def subject_of(certificate: x509.Certificate | x509.CertificateSigningRequest) -> Subject | None:
    """Whom ``certificate`` names by one URI and one host name; None if no party, or if it has a name of any
    other kind: another reader may take that one for a party's.
    """
    with suppress(*UNREADABLE, ConfigError):
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        uris = names.get_values_for_type(x509.UniformResourceIdentifier)
        found = _URI.fullmatch(uris[0]) if len(uris) == 1 and len(list(names)) == 2 else None
        if found is not None:
            subject = Subject(found[1], Role(found[2]), found[3])
            if names.get_values_for_type(x509.DNSName) == [subject.dns]:
                return subject
    return None


def federation_name(run: str) -> str:
    """The name of a run as one of a federation: "Digits/no defence" becomes "digits-no-defence"."""
    return re.sub(r"[^a-z0-9]+", "-", run.lower())[:63].strip("-") or "federation"
