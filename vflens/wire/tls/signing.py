"""Statements that a party signs with the key of its certificate, for others to show later.

The signature covers who states it, of which kind it is, the run and the facts, as JSON; so that of heads is
none of a key of masks, and none of a run of another name. What TLS itself signs begins otherwise.
"""

import datetime
import json
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from vflens.errors import ProtocolError
from vflens.member.signer import Signer, Statement
from vflens.types import Role, Signature
from vflens.wire.tls.identity import Identity
from vflens.wire.tls.issue import pem
from vflens.wire.tls.subject import UNREADABLE, Subject, subject_of
from vflens.wire.tls.trust import leads_to


class TlsSigner(Signer):
    """With certificate, key and trust of ``identity``."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity

    def sign(self, statement: Statement) -> Signature:
        files = self._identity.files
        key: Any = load_pem_private_key(files.key, None)
        value: bytes = key.sign(_bytes(files.subject, statement), *_algorithm(key))
        return Signature(b"".join(map(pem, files.chain)).decode(), value.hex())

    def fits(self, party: str, statement: Statement, signature: Signature | None) -> bool:
        chain = signed_by(party, statement, signature)
        subject = subject_of(chain[0]) if chain else None
        return subject is not None and subject.federation == self._identity.files.subject.federation

    def check(self, party: str, role: Role, statement: Statement, signature: Signature | None) -> None:
        files, chain = self._identity.files, signed_by(party, statement, signature)
        due, now = files.subject_of(party, role), datetime.datetime.now(datetime.UTC)
        if (
            not chain
            or subject_of(chain[0]) != due
            or not chain[0].not_valid_before_utc <= now <= chain[0].not_valid_after_utc
            or not leads_to(chain, files.trust.roots(due))
        ):
            raise ProtocolError(
                f"the {statement.kind} of {party!r}: not signed with a certificate of {due} that this party "
                "trusts: compare the certificates with its operator (vflens certs show)"
            )

    def knows(self, role: Role) -> bool:
        trust = self._identity.files.trust
        return bool(trust.authorities) or any(pinned.role is role for pinned in trust.pins)


def certified(signature: Signature | None) -> Subject | None:
    """Whom the certificate of ``signature`` names, whoever made it; None: no party."""
    if signature is None:
        return None
    try:
        return subject_of(x509.load_pem_x509_certificates(signature.certificates.encode())[0])
    except UNREADABLE:
        return None


def signed_by(party: str, statement: Statement, signature: Signature | None) -> list[x509.Certificate]:
    """The certificates of ``signature``, if the first names ``party`` and its key signed this; else none."""
    if signature is None:
        return []
    try:
        chain = x509.load_pem_x509_certificates(signature.certificates.encode())
        subject, key = subject_of(chain[0]), chain[0].public_key()
        if subject is None or subject.party != party:
            return []
        verify: Any = getattr(key, "verify", None)  # keys of some kinds sign nothing
        verify(bytes.fromhex(signature.value), _bytes(subject, statement), *_algorithm(key))
    except (InvalidSignature, *UNREADABLE):
        return []
    return chain


def _bytes(by: Subject, statement: Statement) -> bytes:
    return json.dumps({"by": by.uri, **statement._asdict()}, sort_keys=True).encode()


def _algorithm(key: Any) -> tuple[Any, ...]:
    """How ``key``, private or public, signs: ECDSA or RSA with SHA-256, Ed25519 as it is."""
    if isinstance(key, ec.EllipticCurvePrivateKey | ec.EllipticCurvePublicKey):
        return (ec.ECDSA(hashes.SHA256()),)
    if isinstance(key, rsa.RSAPrivateKey | rsa.RSAPublicKey):
        return padding.PKCS1v15(), hashes.SHA256()
    return ()
