"""Mutual TLS over a real port: who is let in, who is refused, and with which words."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from certs import FEDERATION, files, pin, subject
from commandline import Run
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from meetings import (
    ACTIVE,
    CALLEE,
    COORDINATOR,
    STOP,
    ask,
    counterpart,
    raw_call,
    served,
)
from stubparty import CALLERS, LIMITS

from vflens.config import OPERATOR, Peer, Tls
from vflens.errors import AccessError, ConfigError, UnavailableError
from vflens.protocol import acts
from vflens.services.healthcheck import came, serves
from vflens.types import Role
from vflens.wire.channel import grpc, listen, new_server, open_channel
from vflens.wire.grpc_link import GrpcLink
from vflens.wire.tls import identity as identity_module
from vflens.wire.tls.identity import Identity
from vflens.wire.tls.issue import Authority, draw_authority, draw_key, write_key, write_public
from vflens.wire.tls.probe import speaks_tls
from vflens.wire.tls.subject import Subject, federation_name, subject_of
from vflens.wire.tls.trust import load_trust, read_certificates


@pytest.fixture(params=["pins", "authority"])
def trusted(request: pytest.FixtureRequest, tmp_path: Path) -> dict[Subject, Tls]:
    """The files of three parties that trust each other."""
    authority = draw_authority(FEDERATION) if request.param == "authority" else None
    made = {whom: files(tmp_path / whom.party, whom, authority) for whom in (CALLEE, COORDINATOR, ACTIVE)}
    if authority is None:
        for tls in made.values():
            pin(tls, [other for other in made.values() if other is not tls])
    return made


def test_peers_that_trust_each_other_meet(trusted: dict[Subject, Tls]) -> None:
    with served(trusted[CALLEE]) as address:
        tls = counterpart(trusted[COORDINATOR], COORDINATOR)
        assert tls.reaches(address)
        assert serves(address, LIMITS, tls=tls)
        assert ask(address, tls) == acts.Done()
        assert speaks_tls(address)


def test_a_certificate_speaks_for_one_party_only(trusted: dict[Subject, Tls]) -> None:
    """The token is right, the certificate is trusted, and it is another's."""
    with served(trusted[CALLEE]) as address:
        words = (
            "party 'callee': caller 'coordinator' at 'callee' shows the certificate of another: it must name "
        )
        with pytest.raises(AccessError, match=f"^{words}spiffe://hospitals/coordinator/coordinator$"):
            ask(address, counterpart(trusted[ACTIVE], ACTIVE))


def test_a_right_certificate_needs_the_token_too(trusted: dict[Subject, Tls]) -> None:
    with served(trusted[CALLEE]) as address:
        tls = counterpart(trusted[COORDINATOR], COORDINATOR)
        link = GrpcLink(
            "callee", address, caller="coordinator", token="another-token-of-20", limits=LIMITS, tls=tls
        )
        with pytest.raises(AccessError, match="is no peer of 'callee', or its token is another"):
            link.call(STOP)
        link.close()


@pytest.mark.parametrize("peer", [subject("other", Role.PASSIVE), subject("callee", Role.ACTIVE)])
def test_the_library_itself_refuses_a_server_of_another_name(peer: Subject, tmp_path: Path) -> None:
    """Nothing is sent to it, whatever our own look at the certificate finds."""
    authority = draw_authority(FEDERATION)
    server = files(tmp_path / "server", CALLEE, authority)
    tls = counterpart(files(tmp_path / "caller", COORDINATOR, authority), COORDINATOR, peer)
    with served(server) as address:
        assert not serves(address, LIMITS, tls=tls)
        with open_channel(address, LIMITS, tls) as channel, pytest.raises(grpc.RpcError) as refused:
            raw_call(channel)
        assert re.search("verification|peer name", str(refused.value.details()).lower())  # by its version
        words = f"at {address} another party answers: its certificate is that of passive 'callee' of fed"
        with pytest.raises(AccessError, match=words):
            ask(address, tls)


def test_plaintext_and_a_missing_certificate_are_refused(trusted: dict[Subject, Tls]) -> None:
    with served(trusted[CALLEE]) as address:
        with pytest.raises(UnavailableError):
            ask(address, None)
        roots = grpc.ssl_channel_credentials(trusted[CALLEE].certificate.read_bytes())
        name = [("grpc.ssl_target_name_override", CALLEE.dns)]
        with grpc.secure_channel(address, roots, name) as channel, pytest.raises(grpc.RpcError) as refused:
            raw_call(channel)
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


def test_a_peer_without_tls_is_named(tmp_path: Path) -> None:
    mine, other = files(tmp_path / "a", COORDINATOR), files(tmp_path / "b", CALLEE)
    pin(mine, [other])
    with ThreadPoolExecutor(2) as workers:
        server = new_server(workers, LIMITS)
        address = f"127.0.0.1:{listen(server, '127.0.0.1:0')}"
        server.start()
        assert not speaks_tls(address)
        with pytest.raises(AccessError, match=r"does not answer in TLS .*: add \[tls\] to its configuration"):
            counterpart(mine, COORDINATOR).reaches(address)
        server.stop(0).wait()
    assert not counterpart(mine, COORDINATOR).reaches(address)  # nobody listens: no reason to give up


def test_a_connection_to_itself_is_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel may give a caller the very port that its peer does not listen at yet."""
    mine, other = files(tmp_path / "a", COORDINATOR), files(tmp_path / "b", CALLEE)
    pin(mine, [other])
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        host, port = found.getsockname()
    plain, led = socket.create_connection, []

    def to_itself(address: tuple[str, int], timeout: float) -> socket.socket:
        connection = plain(address, timeout, source_address=address)
        led.append(connection.getpeername() == connection.getsockname())
        return connection

    monkeypatch.setattr(socket, "create_connection", to_itself)
    assert not counterpart(mine, COORDINATOR).reaches(f"{host}:{port}")
    assert not speaks_tls(f"{host}:{port}")
    assert led == [True, True]
    with socket.socket() as peer:
        peer.bind((host, port))  # the port stays free for it


def test_a_party_without_tls_does_not_wait_for_one_with_it(trusted: dict[Subject, Tls]) -> None:
    with served(trusted[CALLEE]) as address:
        peer = Peer(name="callee", role=Role.PASSIVE, address=address, token="t" * 32)
        config: Any = SimpleNamespace(limits=LIMITS, tls=None)
        with pytest.raises(AccessError, match=r"answers in TLS, and this party has no \[tls\]: add it"):
            came(peer, config)
    assert not came(peer, config)  # nobody listens any more


def test_an_operator_with_a_certificate_of_its_own(
    vflens: Run, refused: Callable[..., str], tmp_path: Path
) -> None:
    active, mine = files(tmp_path / "active", ACTIVE), tmp_path / "operator"
    operator = files(mine, subject(OPERATOR, Role.OPERATOR))
    pin(active, [operator])
    pin(operator, [active])
    token = tmp_path / "token"
    token.write_text(CALLERS[OPERATOR][1], encoding="utf-8")
    token.chmod(0o600)
    with served(active, ACTIVE) as address:
        asked = ("predict", "--to", address, "--token-file", token)
        ended = vflens(*asked, "--tls", mine, "--json")
        assert ended.code == 0, ended.err
        assert json.loads(ended.out)[0]["scores"] == {"no": 0.25, "yes": 0.75}
        assert "another party answers" in refused(7, *asked, "--tls", mine, "--party", "bank")
        assert "cannot be reached" in refused(11, *asked)  # plaintext


NOW = datetime.now(UTC)


@pytest.mark.parametrize(
    ("start", "words"),
    [(NOW - timedelta(days=100), "has ended"), (NOW + timedelta(days=2), "is not valid yet")],
)
def test_a_server_out_of_date(
    start: datetime, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, late = files(tmp_path / "a", COORDINATOR), files(tmp_path / "b", CALLEE, start=start)
    pin(mine, [late])
    pin(late, [mine])
    monkeypatch.setattr(identity_module, "_check_own", lambda *_: None)  # it would not start otherwise
    with served(late) as address:
        tls = counterpart(mine, COORDINATOR)
        with pytest.raises(AccessError, match=f"the certificate of party 'callee' at {address} {words} "):
            tls.reaches(address)
        assert not serves(address, LIMITS, tls=tls)


def test_both_ends_say_which_certificate_is_not_trusted(tmp_path: Path) -> None:
    mine, other = files(tmp_path / "a", COORDINATOR), files(tmp_path / "b", CALLEE)
    pin(other, [files(tmp_path / "c", ACTIVE)])
    pin(mine, [other])
    with served(other) as address:
        tls = counterpart(mine, COORDINATOR)
        with pytest.raises(AccessError, match="closed the connection when it saw this party's certificate"):
            tls.reaches(address)
        next(mine.trust.glob("*.pem")).unlink()
        pin(mine, [files(tmp_path / "d", CALLEE)])  # another key under the peer's name
        with pytest.raises(AccessError, match=r"is not trusted \(fingerprint [0-9a-f ]{71}\): compare"):
            counterpart(mine, COORDINATOR).reaches(address)


def test_a_pinned_party_cannot_sign_for_another(tmp_path: Path) -> None:
    """Its certificate is a root of the server's: what its key signs must still be refused."""
    callee, active = files(tmp_path / "callee", CALLEE), files(tmp_path / "active", ACTIVE)
    pin(callee, [active])
    key = draw_key()
    signer = Authority(read_certificates(active.certificate)[0], _private(active))
    forged = files(tmp_path / "forged", COORDINATOR)
    write_key(forged.key, key)
    write_public(
        forged.certificate, signer.issue(key.public_key(), COORDINATOR), signer.certificate
    )  # with its chain
    roots = grpc.ssl_channel_credentials(
        callee.certificate.read_bytes(), forged.key.read_bytes(), forged.certificate.read_bytes()
    )
    with (
        served(callee) as address,
        grpc.secure_channel(address, roots, [("grpc.ssl_target_name_override", CALLEE.dns)]) as channel,
        pytest.raises(grpc.RpcError) as refused,
    ):
        raw_call(channel)
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


def _private(tls: Tls) -> Any:
    return load_pem_private_key(tls.key.read_bytes(), None)


class TestOwnFiles:
    """A party finds what is wrong with its own files before it meets anybody."""

    def refusal(self, tls: Tls, whom: Subject = CALLEE) -> str:
        with pytest.raises(ConfigError) as refused:
            Identity(tls, whom.party, whom.role)
        return str(refused.value)

    @pytest.fixture
    def tls(self, tmp_path: Path) -> Tls:
        made = files(tmp_path / "own", CALLEE)
        pin(made, [files(tmp_path / "peer", ACTIVE)])
        return made

    def test_good_ones(self, tls: Tls) -> None:
        identity = Identity(tls, "callee", Role.PASSIVE)
        assert identity.warning() == ""
        assert identity.files.subject == CALLEE

    def test_dates(self, tls: Tls, tmp_path: Path) -> None:
        for start, words in (
            (NOW - timedelta(days=100), r"ended on .* UTC: draw another"),
            (NOW + timedelta(days=2), r"is not valid before .* UTC: set the clock right"),
        ):
            other = files(tmp_path / "other", CALLEE, start=start)
            changed = tls.model_copy(update={"certificate": other.certificate, "key": other.key})
            assert re.search(words, self.refusal(changed))

    def test_another_party_and_role(self, tls: Tls) -> None:
        found = self.refusal(tls, subject("other", Role.PASSIVE))
        assert "is that of passive 'callee' of federation 'hospitals', not of passive 'other'" in found
        assert "not of active 'callee'" in self.refusal(tls, subject("callee", Role.ACTIVE))

    def test_a_key_that_others_can_read(self, tls: Tls) -> None:
        tls.key.chmod(0o640)
        found = self.refusal(tls)
        assert "is open to other users of this machine (mode 640): chmod 600" in found
        assert "if others could copy it, draw another" in found

    def test_a_key_of_another_certificate(self, tls: Tls, tmp_path: Path) -> None:
        other = files(tmp_path / "other", CALLEE)
        found = self.refusal(tls.model_copy(update={"key": other.key}))
        assert "is not that of certificate" in found

    def test_no_key_at_all(self, tls: Tls) -> None:
        assert "cannot be read (No such file or directory)" in self.refusal(
            tls.model_copy(update={"key": Path("nowhere.pem")})
        )
        tls.key.write_text("no key", encoding="utf-8")
        assert "is no private key in PEM without a password" in self.refusal(tls)

    def test_an_authority_that_is_not_trusted(self, tls: Tls, tmp_path: Path) -> None:
        other = files(tmp_path / "other", CALLEE, draw_authority(FEDERATION))
        changed = other.model_copy(update={"trust": tls.trust})
        assert "leads to no authority in tls.trust" in self.refusal(changed)

    def test_trust_without_certificates(self, tls: Tls, tmp_path: Path) -> None:
        empty = tmp_path / "empty"
        empty.mkdir()
        words = "holds no certificate: add the peers' with: vflens certs trust"
        assert words in self.refusal(tls.model_copy(update={"trust": empty}))
        (empty / "x.pem").write_text("nothing", encoding="utf-8")
        assert "holds no certificate in PEM" in self.refusal(tls.model_copy(update={"trust": empty}))

    def test_trust_in_a_signed_certificate(self, tls: Tls, tmp_path: Path) -> None:
        other = files(tmp_path / "other", ACTIVE, draw_authority(FEDERATION))
        changed = tls.model_copy(update={"trust": other.certificate})
        assert "a certificate that another one signed: trust the authority's own" in self.refusal(changed)

    def test_a_week_before_the_end(self, tls: Tls, tmp_path: Path) -> None:
        other = files(tmp_path / "other", CALLEE, days=6.5)
        near = tls.model_copy(update={"certificate": other.certificate, "key": other.key})
        words = Identity(near, "callee", Role.PASSIVE).warning()
        assert "ends in 6 days (" in words
        assert "the party takes it over without a restart" in words


class TestNames:
    def test_no_two_parties_share_a_name(self) -> None:
        """Host names ignore capitals, and a dot ends a label."""
        parties = ["a", "A", "a.b", "a_b", "a-b", "a_2eb", "A.B", "a.active"]
        names = [subject(p, role).dns for p in parties for role in (Role.ACTIVE, Role.PASSIVE)]
        assert len({n.lower() for n in names}) == len(names)
        assert subject("bank", Role.ACTIVE).dns == "bank.active.hospitals.vflens"

    def test_a_certificate_names_what_was_asked(self, tmp_path: Path) -> None:
        whom = subject("St.Mary_2", Role.PASSIVE)
        assert subject_of(read_certificates(files(tmp_path, whom).certificate)[0]) == whom

    @pytest.mark.parametrize("name", ["", "A", "a b", "-a", "a-", "a" * 64, "a.b", "ä"])
    def test_federations_that_are_no_label(self, name: str) -> None:
        with pytest.raises(ConfigError, match="lower-case letters, digits or '-'"):
            Subject(name, Role.ACTIVE, "bank")

    def test_the_name_of_a_run_as_a_federation(self) -> None:
        assert federation_name("Digits/no defence") == "digits-no-defence"
        assert federation_name("---") == "federation"
        assert len(federation_name("a-" * 100)) <= 63


def test_trust_keeps_pins_to_their_names(tmp_path: Path) -> None:
    mine = files(tmp_path / "mine", CALLEE)
    authority = draw_authority(FEDERATION)
    pin(mine, [files(tmp_path / "a", ACTIVE), files(tmp_path / "b", COORDINATOR)])
    write_public(mine.trust / "authority.pem", authority.certificate)
    trust = load_trust(mine.trust, FEDERATION)
    assert authority.certificate in trust.roots(ACTIVE)
    assert len(trust.roots(ACTIVE)) == 2
    assert len(trust.roots(subject("nobody", Role.PASSIVE))) == 1
    assert len(trust.all_roots()) == 3
