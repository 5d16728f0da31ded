"""A party's own certificate: checked at the start, read anew when a file changes."""

import datetime
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from vflens.config import Tls
from vflens.errors import AccessError, ConfigError
from vflens.storage.private import exposure
from vflens.types import Role
from vflens.wire.tls.caller import caller_of
from vflens.wire.tls.issue import fingerprint, pem
from vflens.wire.tls.subject import UNREADABLE, Subject, subject_of
from vflens.wire.tls.trust import (
    Trust,
    check_written_by_owner,
    is_authority,
    is_issued_by,
    leads_to,
    load_trust,
    pem_text,
    read_certificates,
)
from vflens.words import counted

_LOOK_SECONDS = 1.0  # between looks at the files
_WARN = datetime.timedelta(days=7)


@dataclass(frozen=True)
class Files:
    """What a party shows and whom it trusts; ``version`` counts the changes."""

    chain: tuple[x509.Certificate, ...]
    key: bytes
    subject: Subject
    trust: Trust
    version: int = 1

    @property
    def certificate(self) -> x509.Certificate:
        """The party's own."""
        return self.chain[0]

    @property
    def ends(self) -> datetime.datetime:
        """The certificate's last second."""
        return self.certificate.not_valid_after_utc

    def subject_of(self, name: str, role: Role) -> Subject:
        """Whom a peer's certificate must name: it is of this party's federation."""
        return Subject(self.subject.federation, role, name)

    def shows_as(self, other: "Files") -> bool:
        """Whether ``other`` shows and trusts the same."""
        return replace(self, version=other.version) == other


class Identity:
    """The certificate of the party ``name`` in its ``role``, and whom it trusts.

    Files that change while the party runs are read again: new connections show and demand what the new files
    say. A certificate and a key that do not fit together are left aside until they do. Trust is taken as it
    is found: what does not load is not trusted. :meth:`warning` names both.

    Raises:
        ConfigError: the certificate is not this party's, not valid today, does not fit the key, leads to no
            authority, or other users can read the key.
    """

    def __init__(self, tls: Tls, name: str, role: Role) -> None:
        self.tls, self._name, self._role = tls, name, role
        self._lock = threading.Lock()
        self._looked, self._problem = time.monotonic(), ""
        self._stamp, self._files = _stamp(tls), read_files(tls, name, role)
        if self._files.trust.problem:
            raise ConfigError(self._files.trust.problem)

    @property
    def files(self) -> Files:
        """The newest files that fit together; take them once for what must agree, the next may be others."""
        return self._looked_at(_LOOK_SECONDS)

    def _looked_at(self, seconds: float) -> Files:
        """What the files said when they were last looked at, ``seconds`` ago at most."""
        with self._lock:
            if time.monotonic() - self._looked >= seconds:
                self._looked = time.monotonic()
                self._look()
            return self._files

    def _look(self) -> None:
        """Read the files again if one changed."""
        stamp = _stamp(self.tls)
        if stamp == self._stamp:
            return
        try:
            found = read_files(self.tls, self._name, self._role)
            self._stamp, self._problem = stamp, ""
        except ConfigError as error:  # one file was replaced, the others follow
            found = replace(self._files, trust=load_trust(self.tls.trust, self._files.subject.federation))
            self._problem = f"the new certificate is not used: {error}"
        if found.trust.problem:
            self._problem = found.trust.problem
        if not found.shows_as(self._files):
            self._files = replace(found, version=self._files.version + 1)

    @property
    def left(self) -> datetime.timedelta:
        """Until the certificate ends; negative afterwards."""
        return self.files.ends - _now()

    def warning(self) -> str:
        """What the operator must do: a certificate that ends within a week or has ended, or new files that do
        not fit; "" if nothing.
        """
        ends, left = self.files.ends, self.left
        if self._problem or left > _WARN:
            return self._problem
        when = f"ends in {counted(left.days, 'day')} ({ends:%Y-%m-%d %H:%M} UTC)"
        if left.total_seconds() < 0:
            when = f"ended on {ends:%Y-%m-%d %H:%M} UTC, new connections are refused"
        return (
            f"the certificate {self.tls.certificate} {when}: draw or request another, the party takes it "
            "over without a restart"
        )

    def accepted(self, name: str, role: Role) -> frozenset[Subject]:
        """Whom a caller's certificate may name; an operator may also use that of the party it operates."""
        files = self.files
        subjects = {files.subject_of(name, role)}
        if role is Role.OPERATOR:
            subjects.add(files.subject)
        return frozenset(subjects)

    def meets_member(self, context: Any) -> bool:
        """Whether the caller of a gRPC ``context`` is of this party's federation."""
        with suppress(AccessError):
            caller = caller_of(context)
            return caller is not None and caller.federation == self.files.subject.federation
        return False

    def server_credentials(self) -> grpc.ServerCredentials:
        """What a server shows, read anew when a caller connects; every caller must show a certificate.

        Each time the files are looked at: a caller who was told of a renewed certificate connects at once.
        When a trusted certificate ends, callers that resume a session of its time must show one anew.
        """
        shown = self.files
        until = _next_end(shown)

        def fetch() -> Any:
            nonlocal shown, until
            files = self._looked_at(0)
            if files.version == shown.version and _now() <= until:
                return None
            shown, until = files, _next_end(files)
            return _server_configuration(files)

        return grpc.dynamic_ssl_server_credentials(
            _server_configuration(shown), fetch, require_client_authentication=True
        )


def read_files(tls: Tls, name: str, role: Role) -> Files:
    """The files of ``tls``, which must be those of the party ``name``.

    Raises:
        ConfigError: as :class:`Identity`.
    """
    with suppress(PermissionError):  # which the next check names
        if not tls.certificate.exists():
            raise ConfigError(
                f"certificate {tls.certificate} does not exist: draw it with: vflens certs init"
            )
    check_written_by_owner(tls.certificate)
    chain, key = read_certificates(tls.certificate), _read_key(tls)
    subject = subject_of(chain[0])
    if subject is None or (subject.party, subject.role) != (name, role):
        raise ConfigError(
            f"certificate {tls.certificate} is that of {subject or 'no party'}, not of {role} {name!r}: give "
            "this party's own"
        )
    files = Files(tuple(chain), key, subject, load_trust(tls.trust, subject.federation))
    _check_own(files, tls)
    return files


def _read_key(tls: Tls) -> bytes:
    """The private key, for its owner alone."""
    try:
        open_to, key = exposure(tls.key, 0o600), pem_text(tls.key)
    except OSError as error:
        raise ConfigError(f"key {tls.key} cannot be read ({error.strerror}): check the path") from error
    if open_to:
        raise ConfigError(f"key {tls.key} {open_to}; if others could copy it, draw another")
    return key


def _check_own(files: Files, tls: Tls) -> None:
    own, now = files.certificate, _now()
    if own.not_valid_before_utc > now:
        raise ConfigError(
            f"certificate {tls.certificate} is not valid before {own.not_valid_before_utc:%Y-%m-%d %H:%M} "
            "UTC: set the clock right, or draw another"
        )
    if files.ends < now:
        raise ConfigError(
            f"certificate {tls.certificate} ended on {files.ends:%Y-%m-%d %H:%M} UTC: draw another with: "
            "vflens certs init, or request one"
        )
    if _public_of(files.key, tls) != _public(own):
        raise ConfigError(
            f"key {tls.key} is not that of certificate {tls.certificate}: give the two files that were drawn "
            "together"
        )
    if is_authority(own):
        raise ConfigError(
            f"certificate {tls.certificate} may sign others: a party needs one of its own, that cannot"
        )
    if not is_issued_by(own, own) and not leads_to(files.chain, files.trust.authorities):
        raise ConfigError(
            f"certificate {tls.certificate} (fingerprint {fingerprint(own)}) leads to no authority in "
            f"tls.trust = {tls.trust}: add the certificate of the authority that signed it"
        )


def _public_of(key: bytes, tls: Tls) -> bytes:
    """The public half of the private ``key``."""
    try:
        return _encoded(serialization.load_pem_private_key(key, password=None).public_key())
    except UNREADABLE as error:
        raise ConfigError(
            f"key {tls.key} is no private key in PEM without a password: give another file"
        ) from error


def _public(certificate: x509.Certificate) -> bytes:
    return _encoded(certificate.public_key())


def _encoded(public_key: Any) -> bytes:
    encoded: bytes = public_key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return encoded


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _next_end(files: Files) -> datetime.datetime:
    """When the next of the trusted certificates ends."""
    now, never = _now(), datetime.datetime.max.replace(tzinfo=datetime.UTC)
    return min(
        (c.not_valid_after_utc for c in files.trust.all_roots() if c.not_valid_after_utc > now), default=never
    )


def _server_configuration(files: Files) -> Any:
    roots = [*files.trust.all_roots(), files.certificate]  # the party's own commands ask it too
    return grpc.ssl_server_certificate_configuration(
        [(files.key, b"".join(map(pem, files.chain)))], root_certificates=b"".join(map(pem, roots))
    )


def _stamp(tls: Tls) -> tuple[tuple[Path, int, int], ...]:
    """The files, when each or its mode was last changed, and which it is, should a link lead to another; one
    that is missing is left out.
    """
    files = (tls.certificate, tls.key, tls.trust, *sorted(tls.trust.glob("*.pem")))
    found = []
    for file in files:
        with suppress(OSError):
            stat = file.stat()
            found.append((file, stat.st_ctime_ns, stat.st_ino))
    return tuple(found)
