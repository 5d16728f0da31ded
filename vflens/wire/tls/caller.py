"""Who is at the other end of a connection that a server accepted.

The library lists the names of all kinds in the caller's certificate under one key; so the certificate itself
is read. A session that is resumed has the certificate of the first handshake, whose end nobody looked at.
"""

import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from cryptography import x509

from vflens.errors import AccessError
from vflens.wire.tls.subject import UNREADABLE, Subject, subject_of

_CERTIFICATE = "x509_pem_cert"  # the caller's own, as the library calls it


class Shown(NamedTuple):
    """Whom a caller's certificate names, and when it ends."""

    subject: Subject | None
    ends: datetime.datetime


def caller_of(context: Any) -> Subject | None:
    """Whom the caller of a gRPC ``context`` proves to be; None: no party.

    Raises:
        AccessError: its certificate has ended.
    """
    shown = _read(b"".join(context.auth_context().get(_CERTIFICATE, ())[:1]))
    if shown.ends < datetime.datetime.now(datetime.UTC):
        raise AccessError(
            f"the certificate of {shown.subject or 'this caller'} ended on {shown.ends:%Y-%m-%d %H:%M} UTC: "
            "draw or request another, then resume the run"
        )
    return shown.subject


@lru_cache(maxsize=64)
def _read(pem: bytes) -> Shown:
    """What is read of a certificate; a caller opens many calls with one."""
    try:
        certificate = x509.load_pem_x509_certificate(pem)
        return Shown(subject_of(certificate), certificate.not_valid_after_utc)
    except UNREADABLE:
        return Shown(None, datetime.datetime.max.replace(tzinfo=datetime.UTC))
