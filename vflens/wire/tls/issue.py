"""Keys and certificates: drawn, signed, requested. Keys are P-256; no function shows one."""

import datetime
import secrets
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from vflens.storage.files import write_whole
from vflens.storage.private import write_private
from vflens.wire.tls.subject import Subject

DAYS = 90  # of a party's certificate
_AUTHORITY_DAYS = 5 * 365
_SKEW = datetime.timedelta(hours=1)  # a peer's clock may be so late


@dataclass(frozen=True)
class Authority:
    """Signs the certificates of one federation's parties."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def issue(
        self,
        public_key: ec.EllipticCurvePublicKey,
        subject: Subject,
        days: float = DAYS,
        start: datetime.datetime | None = None,
    ) -> x509.Certificate:
        """A certificate of ``subject`` for ``days`` from ``start``, by default from now; it ends with the
        authority's own at the latest.
        """
        name, begin = _name(subject.party, subject.federation), start or datetime.datetime.now(datetime.UTC)
        left = (self.certificate.not_valid_after_utc - begin) / datetime.timedelta(days=1)
        builder = _for_party(public_key, subject, name, min(days, left), begin)
        return builder.issuer_name(self.certificate.subject).sign(self.key, hashes.SHA256())


def draw_key() -> ec.EllipticCurvePrivateKey:
    """A new key."""
    return ec.generate_private_key(ec.SECP256R1())


def draw_authority(federation: str) -> Authority:
    """An authority with a new key, for five years."""
    key = draw_key()
    name = _name("authority", federation)
    builder = _builder(key.public_key(), name, _AUTHORITY_DAYS, None).issuer_name(name)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
    return Authority(builder.sign(key, hashes.SHA256()), key)


def self_signed(
    key: ec.EllipticCurvePrivateKey,
    subject: Subject,
    days: float = DAYS,
    start: datetime.datetime | None = None,
) -> x509.Certificate:
    """A certificate of ``subject`` that its own ``key`` signs: its peers pin it.

    It can sign no other, so a peer that pins it trusts this one name.
    """
    name = _name(subject.party, subject.federation)
    builder = _for_party(key.public_key(), subject, name, days, start)
    return builder.issuer_name(name).sign(key, hashes.SHA256())


def request(key: ec.EllipticCurvePrivateKey, subject: Subject) -> x509.CertificateSigningRequest:
    """What an authority needs to sign a certificate of ``subject``; it holds no secret."""
    name = _name(subject.party, subject.federation)
    builder = x509.CertificateSigningRequestBuilder().subject_name(name)
    return builder.add_extension(_names(subject), critical=False).sign(key, hashes.SHA256())


def write_key(file: Path, key: ec.EllipticCurvePrivateKey) -> None:
    """Write ``key`` to ``file``, for its owner alone.

    Raises:
        OSError: it cannot be written.
    """
    encoding, private = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    write_private(file, key.private_bytes(encoding, private, serialization.NoEncryption()).decode())


def write_public(file: Path, *documents: x509.Certificate | x509.CertificateSigningRequest) -> None:
    """Write certificates or requests to ``file``.

    Raises:
        StorageError: it cannot be written.
    """
    write_whole(file, b"".join(map(pem, documents)))


def pem(document: x509.Certificate | x509.CertificateSigningRequest) -> bytes:
    """``document`` as text."""
    return document.public_bytes(serialization.Encoding.PEM)


def fingerprint(certificate: x509.Certificate) -> str:
    """SHA-256 of ``certificate``, as people compare it: 64 hexadecimal digits in groups of 8."""
    digits = certificate.fingerprint(hashes.SHA256()).hex()
    return " ".join(digits[at : at + 8] for at in range(0, 64, 8))


def _for_party(
    public_key: ec.EllipticCurvePublicKey,
    subject: Subject,
    name: x509.Name,
    days: float,
    start: datetime.datetime | None,
) -> x509.CertificateBuilder:
    builder = _builder(public_key, name, days, start)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
    both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = builder.add_extension(x509.ExtendedKeyUsage(both), critical=False)
    return builder.add_extension(_names(subject), critical=False)


def _builder(
    public_key: ec.EllipticCurvePublicKey, name: x509.Name, days: float, start: datetime.datetime | None
) -> x509.CertificateBuilder:
    begin = datetime.datetime.now(datetime.UTC) if start is None else start
    return (
        x509.CertificateBuilder(serial_number=x509.random_serial_number())
        .subject_name(name)
        .public_key(public_key)
        .not_valid_before(begin - _SKEW)
        .not_valid_after(begin + datetime.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )


def _name(common: str, federation: str) -> x509.Name:
    """A name that no other certificate has: a verifier that finds two of one name may look at one only."""
    return x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, common),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, federation),
            x509.NameAttribute(NameOID.SERIAL_NUMBER, secrets.token_hex(8)),
        ]
    )


def _names(subject: Subject) -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName(
        [x509.DNSName(subject.dns), x509.UniformResourceIdentifier(subject.uri)]
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
