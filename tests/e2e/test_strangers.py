"""Real parties over mutual TLS: who is refused, and how soon."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from certs import files, pin, subject
from processes import Federation, change, dealt, eventually, vflens

from vflens.config import Limits, Tls, load_party
from vflens.errors import AccessError, UnavailableError, VflensError
from vflens.protocol.acts import Stop, Submission
from vflens.services.healthcheck import serves_itself
from vflens.types import Role
from vflens.wire.grpc_link import GrpcLink
from vflens.wire.tls import counterpart as counterpart_module
from vflens.wire.tls import identity as identity_module
from vflens.wire.tls.counterpart import Counterpart
from vflens.wire.tls.identity import Identity
from vflens.wire.tls.issue import draw_authority
from vflens.wire.tls.subject import Subject

PASSIVE = subject("passive", Role.PASSIVE)
ACTIVE = subject("active", Role.ACTIVE)
COORDINATOR = subject("coordinator", Role.COORDINATOR)
NOW = datetime.now(UTC)
LIMITS = Limits(call_seconds=60)
SUBMISSION = Submission("tiny/run", "active", "predict", np.zeros(0, np.int32), guesses=())


@dataclass
class Server:
    """A passive party's process that waits for its coordinator, and what its peers would have."""

    federation: Federation
    tls: Tls
    peers: dict[Subject, Tls]
    address: str
    folder: Path

    def ask(self, tls: Tls | None, whom: Subject, act: Any = SUBMISSION, caller: str = "active") -> Any:
        """A call with the right token."""
        token = next(
            p["token"]
            for p in tomllib.loads(self.federation.config("passive").read_text())["peers"]
            if p["name"] == caller
        )
        shown = (
            None
            if tls is None
            else Counterpart(Identity(tls, whom.party, whom.role), "passive", Role.PASSIVE)
        )
        link = GrpcLink("passive", self.address, caller=caller, token=token, limits=LIMITS, tls=shown)
        try:
            return link.call(act)
        finally:
            link.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("tls")
    limits = {"wait_seconds": 600, "call_seconds": 60, "step_seconds": 60}
    with dealt(folder, network={"transport": "tcp"}, limits=limits) as federation:
        made = {whom: files(folder / whom.party, whom) for whom in (PASSIVE, ACTIVE, COORDINATOR)}
        pin(made[PASSIVE], [made[ACTIVE], made[COORDINATOR]])
        for peer in (ACTIVE, COORDINATOR):
            pin(made[peer], [made[PASSIVE]])
        file = federation.config("passive")
        change(file, tls={name: str(path) for name, path in made[PASSIVE]})
        federation.start("passive")
        config = load_party(file)
        eventually(lambda: serves_itself(config))
        yield Server(federation, made.pop(PASSIVE), made, config.address, folder=folder)


CLOSED = "closed the connection when it saw this party's certificate"
ENDED = "closed the connection: this party's certificate .* ended on .*: draw or request another"


def test_the_right_peer_is_heard(server: Server) -> None:
    """The answer is the party's own: it has no run yet."""
    with pytest.raises(VflensError) as refused:
        server.ask(server.peers[ACTIVE], ACTIVE)
    assert not isinstance(refused.value, AccessError | UnavailableError), refused.value


def test_plaintext(server: Server) -> None:
    with pytest.raises(UnavailableError):
        server.ask(None, ACTIVE)


def test_another_sender_in_the_message(server: Server) -> None:
    forged = Submission("tiny/run", "coordinator", "predict", np.zeros(0, np.int32), guesses=())
    with pytest.raises(AccessError, match="in the name of 'coordinator' came from 'active'"):
        server.ask(server.peers[ACTIVE], ACTIVE, forged)


def test_another_partys_certificate(server: Server) -> None:
    words = "caller 'coordinator' at 'passive' shows the certificate of another"
    with pytest.raises(AccessError, match=words):
        server.ask(server.peers[ACTIVE], ACTIVE, Stop("tiny/run"), caller="coordinator")


def _wrong_authority(folder: Path) -> Tls:
    return files(folder, ACTIVE, draw_authority(ACTIVE.federation))


STRANGERS: dict[str, tuple[Subject, Callable[[Path], Tls], bool]] = {
    "another authority": (ACTIVE, _wrong_authority, False),
    "not pinned": (ACTIVE, lambda folder: files(folder, ACTIVE), False),
    "ended": (ACTIVE, lambda folder: files(folder, ACTIVE, start=NOW - timedelta(days=100)), True),
    "not valid yet": (ACTIVE, lambda folder: files(folder, ACTIVE, start=NOW + timedelta(days=2)), True),
}


@pytest.mark.parametrize("case", STRANGERS)
def test_certificates_that_the_handshake_refuses(
    server: Server, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client is told the reason that TLS keeps from it, or finds it in its own file."""
    whom, make, is_pinned = STRANGERS[case]
    monkeypatch.setattr(identity_module, "_check_own", lambda *_: None)  # a party would not start with it
    monkeypatch.setattr(counterpart_module, "_PAUSE_SECONDS", 0.0)
    tls = make(tmp_path / "caller")
    (tls.trust / "passive.pem").write_bytes(server.tls.certificate.read_bytes())
    words = ENDED if case == "ended" else CLOSED
    with _trusting(server, tls if is_pinned else None), pytest.raises(AccessError, match=words):
        server.ask(tls, whom)


def test_another_role_of_the_same_name(server: Server, tmp_path: Path) -> None:
    coordinator = subject("active", Role.COORDINATOR)
    tls = files(tmp_path / "caller", coordinator)
    pin(tls, [server.tls])
    with (
        _trusting(server, tls),
        pytest.raises(AccessError, match=r"it must name spiffe://hospitals/active/active$"),
    ):
        server.ask(tls, coordinator)


def test_a_withdrawn_pin(server: Server, tmp_path: Path) -> None:
    """While the process runs."""
    tls = files(tmp_path / "caller", ACTIVE)
    pin(tls, [server.tls])
    with _trusting(server, tls), pytest.raises(VflensError) as refused:
        server.ask(tls, ACTIVE)
    assert not isinstance(refused.value, AccessError | UnavailableError), refused.value
    with pytest.raises(AccessError, match=CLOSED):
        server.ask(tls, ACTIVE)


class _trusting:  # noqa: N801 - reads as a statement
    """The server's process trusts ``tls`` inside the block; it looks at its files once a second."""

    def __init__(self, server: Server, tls: Tls | None) -> None:
        self._file = server.tls.trust / "more.pem"
        self._text = None if tls is None else tls.certificate.read_bytes()

    def __enter__(self) -> None:
        if self._text is not None:
            self._file.write_bytes(self._text)
            time.sleep(1.1)

    def __exit__(self, *_: object) -> None:
        if self._text is not None:
            self._file.unlink()
            time.sleep(1.1)


def test_a_key_that_others_can_read(server: Server, tmp_path: Path) -> None:
    with dealt(tmp_path, network={"transport": "tcp"}) as federation:
        key = federation.home / "active/tls/key.pem"
        key.chmod(0o644)
        text = vflens("serve", "active", "--config", str(federation.config("active")), code=2).stderr
        assert f"error: key {key} is open to other users of this machine (mode 644): chmod 600" in text


def test_a_coordinator_does_not_wait_for_an_impostor(server: Server) -> None:
    """It ends at once, with code 7, although it would wait ten minutes for a party that is not there."""
    federation = server.federation
    file = federation.config("coordinator")
    tls = server.peers[COORDINATOR]
    (tls.trust / "active.pem").write_bytes(server.peers[ACTIVE].certificate.read_bytes())
    (tls.trust / "passive-0.pem").write_bytes(files(server.folder / "x", PASSIVE).certificate.read_bytes())
    change(file, tls={name: str(path) for name, path in tls})
    text = vflens("serve", "coordinator", "--config", str(file), code=7).stderr
    assert f"the certificate of party 'passive' at {server.address} is not trusted (fingerprint " in text


def test_a_certificate_that_ends_soon(tmp_path: Path) -> None:
    """The operator reads it in the terminal and in the log; the party goes on waiting for the others."""
    with dealt(tmp_path, network={"transport": "tcp"}) as federation:
        tls = federation.home / "active/tls"
        near = files(tmp_path / "near", subject("active", Role.ACTIVE, "tiny"), days=3.5)
        near.key.replace(tls / "key.pem")
        near.certificate.replace(tls / "certificate.pem")
        federation.start("active")
        eventually(lambda: "ends in 3 days (" in federation.said("active"))
        log = federation.home / "active/events.jsonl"
        eventually(lambda: "ends in 3 days (" in log.read_text(encoding="utf-8"))
        assert federation.status("active")["state"] == "running"
