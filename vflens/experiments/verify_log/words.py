"""What a signature in a folder is worth: whether its party can still deny what it stated."""

from enum import StrEnum
from pathlib import Path

from vflens.errors import ConfigError
from vflens.member.signer import Statement
from vflens.types import Signature
from vflens.wire.tls.signing import signed_by
from vflens.wire.tls.subject import subject_of
from vflens.wire.tls.trust import check_root, files_of, leads_to, load_trust, read_certificates


class Word(StrEnum):
    """Whose word a statement is, as far as a reader of logs can tell."""

    PROVEN = "signed with a certificate that is trusted"
    MIXED = "signed with a trusted certificate, but the signatures of this run name several federations"
    CLAIMED = "signed with a certificate that this audit does not trust (--trust)"
    UNSIGNED = "not signed"
    FORGED = "with a signature that does not fit"


def check_trust(trust: Path) -> None:
    """Refuse certificates that prove nothing, before a signature is met.

    Raises:
        ConfigError: there is none, or one cannot be read or is no root.
    """
    files = files_of(trust)
    if not files:
        raise ConfigError(f"--trust {trust} holds no certificate: give a PEM file, or a folder of *.pem")
    for file in files:
        for certificate in read_certificates(file):
            check_root(certificate, file)


def word(owner: str, statement: Statement, signature: Signature | None, trust: Path | None) -> Word:
    """What ``signature`` makes of a ``statement`` of ``owner``; ``trust`` holds certificates as ``tls.trust``
    does. Certificates may have ended since.

    Raises:
        ConfigError: ``trust`` cannot be used.
    """
    if signature is None:
        return Word.UNSIGNED
    chain = signed_by(owner, statement, signature)
    if not chain:
        return Word.FORGED
    subject = subject_of(chain[0])
    if trust is None or subject is None:
        return Word.CLAIMED
    trusted = load_trust(trust, subject.federation)
    if trusted.problem:
        raise ConfigError(trusted.problem)
    return Word.PROVEN if leads_to(chain, trusted.roots(subject)) else Word.CLAIMED
