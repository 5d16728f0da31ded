"""Trust that ends, and names that deceive: who is refused over mutual TLS, although it was let in before."""

from __future__ import annotations

import ssl
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from certs import FEDERATION, files, pin, subject
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from meetings import ACTIVE, CALLEE, COORDINATOR, STOP, ask, counterpart, opened, served, wait_until_ended
from processes import eventually
from stubparty import CALLERS, LIMITS

from vflens.config import Tls
from vflens.errors import AccessError, ConfigError
from vflens.protocol import acts
from vflens.services.healthcheck import serves
from vflens.types import Role
from vflens.wire import channel as channel_module
from vflens.wire.channel import grpc
from vflens.wire.messages import RPCS
from vflens.wire.tls import identity as identity_module
from vflens.wire.tls.counterpart import Counterpart
from vflens.wire.tls.identity import Identity
from vflens.wire.tls.issue import draw_authority, pem
from vflens.wire.tls.probe import connected, tls_context
from vflens.wire.tls.subject import Subject
from vflens.wire.tls.trust import check_root, read_certificates


@pytest.fixture(autouse=True)
def _looks_at_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity_module, "_LOOK_SECONDS", 0.0)


@pytest.fixture
def pinned(tmp_path: Path) -> dict[Subject, Tls]:
    """Three parties that pin each other."""
    made = {whom: files(tmp_path / whom.party, whom) for whom in (CALLEE, COORDINATOR, ACTIVE)}
    for tls in made.values():
        pin(tls, [other for other in made.values() if other is not tls])
    return made


class TestWithdrawal:
    """A pin that is removed is withdrawn, whatever else the folder holds."""

    def refuse(self, tls: Tls, change: Callable[[Path], object], caller: Tls) -> str:
        """The warning of the owner of ``tls``, after a ``change`` of its trust that shuts ``caller`` out."""
        own = Identity(tls, CALLEE.party, CALLEE.role)
        with served(tls) as address:
            assert ask(address, counterpart(caller, COORDINATOR))
            change(tls.trust)
            with pytest.raises(AccessError, match="closed the connection when it saw this party"):
                ask(address, counterpart(caller, COORDINATOR))
        return own.warning()

    def test_the_last_pin(self, pinned: dict[Subject, Tls]) -> None:
        text = self.refuse(pinned[CALLEE], _without(""), pinned[COORDINATOR])
        assert "holds no certificate: add the peers' with: vflens certs trust" in text

    def test_the_last_authority(self, tmp_path: Path) -> None:
        """It signed the party's own certificate too: who trusts nobody still has a server."""
        authority = draw_authority(FEDERATION)
        callee, mine = (files(tmp_path / w.party, w, authority) for w in (CALLEE, COORDINATOR))
        text = self.refuse(callee, _without(""), mine)
        assert "holds no certificate" in text

    def test_beside_a_file_that_does_not_load(self, pinned: dict[Subject, Tls]) -> None:
        def change(trust: Path) -> None:
            (trust / "new.pem").write_text("still on its way")
            _without("coordinator")(trust)

        text = self.refuse(pinned[CALLEE], change, pinned[COORDINATOR])
        assert "new.pem holds no certificate in PEM" in text

    def test_beside_a_new_certificate_that_does_not_fit(self, pinned: dict[Subject, Tls]) -> None:
        """The own certificate stays in use; trust does not wait for it."""

        def change(trust: Path) -> None:
            pinned[CALLEE].certificate.write_text("half a file")
            _without("coordinator")(trust)

        text = self.refuse(pinned[CALLEE], change, pinned[COORDINATOR])
        assert "the new certificate is not used" in text

    def test_what_loads_is_still_trusted(self, pinned: dict[Subject, Tls]) -> None:
        callee = pinned[CALLEE]
        with served(callee) as address:
            (callee.trust / "new.pem").write_text("still on its way")
            assert ask(address, counterpart(pinned[COORDINATOR], COORDINATOR))

    def test_an_open_connection_ends_when_it_is_idle(
        self, pinned: dict[Subject, Tls], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """For a minute, and here for a second: its caller is then refused."""
        assert channel_module._IDLE_MS == 60_000
        monkeypatch.setattr(channel_module, "_IDLE_MS", 1_000)
        states = list[grpc.ChannelConnectivity]()
        tls = counterpart(pinned[COORDINATOR], COORDINATOR)
        with served(pinned[CALLEE]) as address, opened(address, tls) as link:
            link._channel.subscribe(states.append)
            assert link.call(STOP) == acts.Done()
            _without("")(pinned[CALLEE].trust)
            ready = grpc.ChannelConnectivity.READY
            eventually(lambda: ready in states and states[-1] is not ready)
            with pytest.raises(AccessError, match="closed the connection when it saw this party"):
                link.call(STOP)

    def test_a_caller_that_trusts_nobody_calls_nobody(self, pinned: dict[Subject, Tls]) -> None:
        """An empty list of roots would be every authority to the libraries."""
        with served(pinned[CALLEE]) as address:
            tls = counterpart(pinned[COORDINATOR], COORDINATOR)
            _without("")(pinned[COORDINATOR].trust)
            with pytest.raises(AccessError, match=r"of party 'callee' at .* is not trusted"):
                ask(address, tls)
            assert not serves(address, LIMITS, tls=tls)


def _without(name: str) -> Callable[[Path], None]:
    """Removes the pins of ``name`` from a folder."""

    def remove(trust: Path) -> None:
        for file in trust.glob(f"{name}*.pem"):
            file.unlink()

    return remove


class TestOtherUsers:
    """What other users of the machine could write is not trusted."""

    @pytest.mark.parametrize("place", ["trust", "trust/coordinator-0.pem", "certificate.pem", "."])
    def test_at_the_start(self, place: str, pinned: dict[Subject, Tls]) -> None:
        open_to = pinned[CALLEE].trust.parent / place
        open_to.chmod(0o777 if open_to.is_dir() else 0o622)
        with pytest.raises(
            ConfigError, match=rf"may be another user's: other users can write {open_to} \(mod"
        ):
            Identity(pinned[CALLEE], CALLEE.party, CALLEE.role)

    def test_while_the_party_runs(self, pinned: dict[Subject, Tls]) -> None:
        identity = Identity(pinned[CALLEE], CALLEE.party, CALLEE.role)
        assert identity.files.trust.pins
        pinned[CALLEE].trust.chmod(0o775)
        assert not identity.files.trust.pins
        assert "chmod go-w" in identity.warning()
        pinned[CALLEE].trust.chmod(0o755)
        assert identity.files.trust.pins
        assert identity.warning() == ""


def _also_named(plain: x509.Certificate, name: x509.GeneralName, signer: Any) -> x509.Certificate:
    """``plain`` with one more name, signed by the key ``signer`` of its issuer."""
    key: Any = plain.public_key()
    builder = x509.CertificateBuilder(
        plain.issuer, plain.subject, key, plain.serial_number, plain.not_valid_before_utc,
        plain.not_valid_after_utc,
    )  # fmt: skip
    for extension in plain.extensions:
        value = extension.value
        if isinstance(value, x509.SubjectAlternativeName):
            value = x509.SubjectAlternativeName([*value, name])
        builder = builder.add_extension(value, extension.critical)
    return builder.sign(signer, hashes.SHA256())


def _key(tls: Tls) -> Any:
    return load_pem_private_key(tls.key.read_bytes(), None)


EMAIL: Any = x509.RFC822Name
NAMES: dict[str, Callable[[Subject], x509.GeneralName]] = {
    "e-mail": lambda whom: EMAIL._init_without_validation(whom.uri),
    "host": lambda whom: x509.DNSName(whom.dns),
    "URI": lambda whom: x509.UniformResourceIdentifier(whom.uri),
    "registered": lambda whom: x509.RegisteredID(x509.ObjectIdentifier("1.2.3")),
}


@pytest.mark.parametrize("kind", NAMES)
def test_a_name_of_another_kind_is_no_second_party(kind: str, tmp_path: Path) -> None:
    """The library lists e-mail names among a caller's names; an authority may sign what it is sent."""
    authority = draw_authority(FEDERATION)
    callee, mine = files(tmp_path / "callee", CALLEE, authority), files(tmp_path / "mine", ACTIVE)
    plain = authority.issue(_key(mine).public_key(), ACTIVE)
    certificate = _also_named(plain, NAMES[kind](COORDINATOR), authority.key)
    shown = grpc.ssl_channel_credentials(pem(authority.certificate), mine.key.read_bytes(), pem(certificate))
    name = [("grpc.ssl_target_name_override", CALLEE.dns)]
    with served(callee) as address, grpc.secure_channel(address, shown, name) as channel:
        stop: Any = channel.unary_unary(RPCS[acts.Stop].path)
        metadata = (("vflens-party", "coordinator"), ("vflens-token", CALLERS["coordinator"][1]))
        with pytest.raises(grpc.RpcError, match="shows the certificate of another: it must name spiffe"):
            stop(b"", metadata=metadata, timeout=60)


def test_a_pin_with_a_name_of_another_kind(tmp_path: Path) -> None:
    mine = files(tmp_path / "mine", ACTIVE)
    (plain,) = read_certificates(mine.certificate)
    assert check_root(plain, mine.certificate) == ACTIVE
    certificate = _also_named(plain, NAMES["e-mail"](COORDINATOR), _key(mine))
    with pytest.raises(ConfigError, match="neither a party's nor an authority's"):
        check_root(certificate, mine.certificate)


class TestResumedSessions:
    """A session has the certificate of its first handshake; nobody asks for it again."""

    def test_it_ends_with_its_certificate(self, tmp_path: Path) -> None:
        authority = draw_authority(FEDERATION)
        mine = (
            files(tmp_path / "signed", COORDINATOR, authority, days=DAYS),
            files(tmp_path / "own", COORDINATOR, days=DAYS),
        )
        callees = files(tmp_path / "a", CALLEE, authority), files(tmp_path / "b", CALLEE)
        pin(callees[1], [mine[1], files(tmp_path / "other", ACTIVE)])
        with served(callees[0]) as signed, served(callees[1]) as pinned:
            before = [Resumed(address, tls) for address, tls in zip((signed, pinned), mine, strict=True)]
            assert [caller.answer() for caller in before] == ["answered", "answered"]
            assert [caller.answer() for caller in before] == ["answered", "answered"]
            assert all(caller.reused for caller in before)
            wait_until_ended(mine[1])
            # An authority's parties are refused at their calls; for a pin's end the server takes new keys.
            assert [caller.answer() for caller in before] == ["refused", "no connection"]
            assert before[0].reused


DAYS = 2.0 / 86_400


class Resumed:
    """Calls Stop at ``address`` with the certificate of ``tls``, each time over the session of the last."""

    def __init__(self, address: str, tls: Tls) -> None:
        self.reused = False
        self._address = address
        self._session: ssl.SSLSession | None = None
        self._context = tls_context("")
        self._context.maximum_version = ssl.TLSVersion.TLSv1_2  # its tickets come with the handshake
        self._context.load_cert_chain(tls.certificate, tls.key)

    def answer(self) -> str:
        """What comes back: answered, refused or no connection."""
        try:
            with (
                connected(self._address) as plain,
                self._context.wrap_socket(plain, session=self._session) as connection,
            ):
                connection.sendall(_stop())
                found = _until(connection, b"grpc-status")
                self.reused, self._session = bool(connection.session_reused), connection.session
        except OSError:
            return "no connection"
        return "refused" if b"AccessError" in found else "answered"


def _stop() -> bytes:
    """A call of Stop by the coordinator with its token, as HTTP/2 without compression."""
    headers = {
        ":method": "POST", ":scheme": "https", ":path": RPCS[acts.Stop].path, ":authority": "x",
        "te": "trailers",         "content-type": "application/grpc", "vflens-party": "coordinator",
        "vflens-token": CALLERS["coordinator"][1],
    }  # fmt: skip
    block = b"".join(
        b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
        for name, value in headers.items()
    )
    frames = _frame(4, 0, 0, b"") + _frame(1, 4, 1, block) + _frame(0, 1, 1, bytes(5))
    return b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frames


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def _until(connection: ssl.SSLSocket, words: bytes) -> bytes:
    """What comes up to ``words``.

    Raises:
        OSError: the connection ends before.
    """
    found = b""
    while words not in found:
        more = connection.recv(4096)
        if not more:
            raise ConnectionResetError
        found += more
    return found


def test_the_health_service_answers_no_other_federation(tmp_path: Path) -> None:
    """One authority signs for two."""
    authority, other = draw_authority(FEDERATION), subject("coordinator", Role.COORDINATOR, "insurers")
    callee = files(tmp_path / "callee", CALLEE, authority)
    own, foreign = (files(tmp_path / w.federation, w, authority) for w in (COORDINATOR, other))
    with served(callee) as address:
        assert serves(address, LIMITS, tls=Meets(Identity(own, "coordinator", Role.COORDINATOR)))
        assert not serves(address, LIMITS, tls=Meets(Identity(foreign, "coordinator", Role.COORDINATOR)))


class Meets(Counterpart):
    """Expects a server of :data:`certs.FEDERATION`, whatever its own federation is."""

    def __init__(self, identity: Identity) -> None:
        super().__init__(identity, CALLEE.party, CALLEE.role)

    @property
    def subject(self) -> Subject:
        return CALLEE
