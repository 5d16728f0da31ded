"""What a party demands of one peer: its name, and a certificate that leads to a trusted one."""

import ssl
import time

import grpc
from cryptography import x509

from vflens.errors import AccessError, UnavailableError, VflensError
from vflens.types import Role
from vflens.wire.tls.identity import Files, Identity
from vflens.wire.tls.issue import fingerprint, pem
from vflens.wire.tls.probe import connected, tls_context
from vflens.wire.tls.subject import Subject, subject_of

_PAUSE_SECONDS = 0.3
_REASONS = {9: "is not valid yet", 10: "has ended"}  # X509_V_ERR_…; all others: nothing trusted signed it


class Counterpart:
    """The peer ``name`` in its ``role``, as ``identity`` meets it, whatever the peer's host is called."""

    def __init__(self, identity: Identity, name: str, role: Role) -> None:
        self._identity, self._name, self._role = identity, name, role

    @property
    def version(self) -> int:
        """Another number once the own certificate, key or trust has changed: open a new channel then."""
        return self._identity.files.version

    @property
    def subject(self) -> Subject:
        """Whom the peer's certificate must name."""
        return self._identity.files.subject_of(self._name, self._role)

    def options(self) -> list[tuple[str, str]]:
        """Channel options: the name that gRPC compares with the peer's certificate."""
        return [("grpc.ssl_target_name_override", self.subject.dns)]

    def credentials(self) -> grpc.ChannelCredentials:
        """What a channel to the peer shows and trusts."""
        files = self._identity.files
        return grpc.ssl_channel_credentials(
            self._roots(files), files.key, b"".join(pem(certificate) for certificate in files.chain)
        )

    def _roots(self, files: Files) -> bytes:
        """Never empty, which the libraries would take for every authority; a party's own commands ask its own
        process.
        """
        subject = files.subject_of(self._name, self._role)
        return b"".join(map(pem, (*files.trust.roots(subject), files.certificate)))

    def reaches(self, address: str) -> bool:
        """Whether a process listens at ``address``; it must be the peer, and accept this party.

        A TLS client whose certificate is refused gets no reason and no error, only a closed connection, so
        this asks apart from gRPC.

        Raises:
            AccessError: it is another party, or closes the connection because of this one's certificate.
        """
        try:
            if self._is_accepted(address):
                return True
            time.sleep(_PAUSE_SECONDS)  # a process that is just ending closes connections too
            if self._is_accepted(address):
                return True
        except ssl.SSLCertVerificationError as error:
            raise AccessError(self._doubt(error, address)) from None
        except OSError as error:
            if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
                raise AccessError(
                    f"party {self._name!r} at {address} does not answer in TLS ({error.reason}): add [tls] "
                    "to its configuration, or remove it from this one"
                ) from None
            return False  # nobody listens, or no longer
        raise AccessError(self._closed(address))

    def cause(self, error: VflensError, address: str) -> VflensError:
        """``error`` of a call to the peer, or why TLS is the reason that it cannot be reached."""
        if isinstance(error, UnavailableError):
            try:
                self.reaches(address)
            except AccessError as refusal:
                return refusal
        return error

    def _is_accepted(self, address: str) -> bool:
        """Whether the peer listens at ``address`` and keeps the connection.

        Raises:
            AccessError: another party listens there.
            OSError: nobody does, or nobody that is trusted.
        """
        context = tls_context(self._roots(self._identity.files).decode())
        try:
            context.load_cert_chain(self._identity.tls.certificate, self._identity.tls.key)
        except ssl.SSLError as error:  # the two are being replaced; at the start they fitted
            raise OSError("certificate and key do not fit for now") from error
        with connected(address) as plain, context.wrap_socket(plain) as connection:
            if subject_of(shown := _shown(connection)) != self.subject:
                raise AccessError(self._other(address, shown))
            try:
                return bool(connection.recv(1))  # HTTP/2: a server that accepts this party speaks first
            except (ssl.SSLError, ConnectionResetError):
                return False

    def _closed(self, address: str) -> str:
        files = self._identity.files
        if self._identity.left.total_seconds() < 0:
            return (
                f"party {self._name!r} at {address} closed the connection: this party's certificate "
                f"{self._identity.tls.certificate} ended on {files.ends:%Y-%m-%d %H:%M} UTC: draw or request "
                "another, then resume the run"
            )
        return (
            f"party {self._name!r} at {address} closed the connection when it saw this party's certificate "
            f"(fingerprint {fingerprint(files.certificate)}): let its operator compare the fingerprint with "
            "vflens certs show, trust it with vflens certs trust, and look at its clock"
        )

    def _doubt(self, error: ssl.SSLCertVerificationError, address: str) -> str:
        """Why the certificate at ``address`` is refused."""
        try:
            with connected(address) as plain, tls_context("").wrap_socket(plain) as connection:
                shown = _shown(connection)
        except (OSError, ValueError):  # or no certificate that can be read
            return f"party {self._name!r} at {address} shows a certificate that is refused: {error.reason}"
        if subject_of(shown) != self.subject:
            return self._other(address, shown)
        reason = _REASONS.get(error.verify_code)
        if reason is not None:
            return (
                f"the certificate of party {self._name!r} at {address} {reason} (valid "
                f"{shown.not_valid_before_utc:%Y-%m-%d %H:%M} to {shown.not_valid_after_utc:%Y-%m-%d %H:%M} "
                "UTC): compare the clocks, or let its operator draw another"
            )
        return (
            f"the certificate of party {self._name!r} at {address} is not trusted (fingerprint "
            f"{fingerprint(shown)}): compare the fingerprint with its operator, then trust it with vflens "
            "certs trust"
        )

    def _other(self, address: str, shown: x509.Certificate) -> str:
        named = subject_of(shown)
        return (
            f"at {address} another party answers: its certificate is that of {named or 'no party'}, not of "
            f"{self.subject} (fingerprint {fingerprint(shown)}): check the address"
        )


def _shown(connection: ssl.SSLSocket) -> x509.Certificate:
    """The certificate that the other end showed."""
    return x509.load_der_x509_certificate(connection.getpeercert(binary_form=True) or b"")
