"""Certificates that are renewed or end while parties serve: what goes on, and who is refused."""

from __future__ import annotations

import os
import ssl
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from certs import FEDERATION, files, pin
from meetings import (
    ACTIVE,
    CALLEE,
    COORDINATOR,
    STOP,
    ask,
    counterpart,
    opened,
    served,
    wait_until_ended,
)
from structlog import get_logger
from stubparty import CALLERS, LIMITS

from vflens.config import Peer, Tls
from vflens.errors import AccessError
from vflens.protocol import acts
from vflens.services.healthcheck import serves
from vflens.services.identity import reminded
from vflens.services.process import _check_alive
from vflens.types import Role
from vflens.wire.channel import grpc
from vflens.wire.grpc_link import GrpcLink
from vflens.wire.tls import counterpart as counterpart_module
from vflens.wire.tls import identity as identity_module
from vflens.wire.tls.identity import Identity
from vflens.wire.tls.issue import draw_authority
from vflens.wire.tls.trust import load_trust


class TestRotation:
    """Files change while both run; no channel and no server is made anew by hand."""

    @pytest.fixture(autouse=True)
    def _looks_at_every_call(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(identity_module, "_LOOK_SECONDS", 0.0)

    def test_new_certificates_and_a_withdrawn_pin(self, tmp_path: Path) -> None:
        callee, mine = files(tmp_path / "callee", CALLEE), files(tmp_path / "mine", COORDINATOR)
        pin(callee, [mine])
        pin(mine, [callee])
        with served(callee) as address:
            tls = counterpart(mine, COORDINATOR)
            link = GrpcLink(
                "callee",
                address,
                caller="coordinator",
                token=CALLERS["coordinator"][1],
                limits=LIMITS,
                tls=tls,
            )
            assert link.call(STOP) == acts.Done()
            first = tls.version
            next_mine = files(tmp_path / "next", COORDINATOR)
            for name in ("key.pem", "certificate.pem"):  # the two never fit in between
                (tmp_path / "next" / name).replace(tmp_path / "mine" / name)
                if name == "key.pem":
                    assert link.call(STOP) == acts.Done()  # the earlier ones stay in use
                    assert tls.version == first
            assert next_mine.certificate != mine.certificate
            with pytest.raises(
                AccessError, match="closed the connection when it saw this party's certificate"
            ):
                link.call(STOP)  # the new one is shown, and not trusted
            assert tls.version > first
            pin(callee, [mine])
            assert ask(address, tls) == acts.Done()
            for withdrawn in callee.trust.glob("*.pem"):
                withdrawn.unlink()
            pin(callee, [files(tmp_path / "other", ACTIVE)])
            with pytest.raises(AccessError, match="closed the connection"):
                counterpart(mine, COORDINATOR).reaches(address)
            link.close()

    def test_a_server_shows_its_new_certificate(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """To the next caller, however short ago its own calls looked at the files."""
        monkeypatch.setattr(identity_module, "_LOOK_SECONDS", 3600.0)
        authority = draw_authority(FEDERATION)
        callee = files(tmp_path / "callee", CALLEE, authority)
        mine = files(tmp_path / "mine", COORDINATOR, authority)
        with served(callee) as address:
            tls = counterpart(mine, COORDINATOR)
            before = _shown(address)
            assert ask(address, tls) == acts.Done()
            files(tmp_path / "callee", CALLEE, authority)
            assert _shown(address) != before
            assert ask(address, tls) == acts.Done()

    def test_a_link_that_leads_to_the_next_files(self, tmp_path: Path) -> None:
        """Mounted secrets are renewed so: all at once, perhaps with equal times."""
        for name in ("first", "second"):
            made = files(tmp_path / name, CALLEE)
            pin(made, [files(tmp_path / "peer", ACTIVE)])
            for file in (made.certificate, made.key, *made.trust.iterdir(), made.trust):
                os.utime(file, (1e9, 1e9))
        now = tmp_path / "now"
        now.symlink_to("first")
        tls = Tls(certificate=now / "certificate.pem", key=now / "key.pem", trust=now / "trust")
        identity = Identity(tls, CALLEE.party, CALLEE.role)
        before = identity.files.certificate
        (tmp_path / "next").symlink_to("second")
        (tmp_path / "next").replace(now)
        assert identity.files.certificate != before
        assert identity.warning() == ""

    def test_a_look_of_another_thread_keeps_no_withdrawn_pin(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It finds the new files between the server's own look and its choice of what to show."""
        tls, shown = files(tmp_path / "callee", CALLEE), []
        look: Any = vars(Identity)["_looked_at"]
        pin(tls, [files(tmp_path / "first", ACTIVE)])
        identity = Identity(tls, CALLEE.party, CALLEE.role)
        monkeypatch.setattr(identity_module, "_server_configuration", lambda found: found.trust.all_roots())
        monkeypatch.setattr(
            grpc,
            "dynamic_ssl_server_credentials",
            lambda first, fetch, **_: shown.extend([first, fetch(), fetch()]),
        )
        looks = []

        def interrupted(self: Identity, seconds: float) -> Any:
            found = look(self, seconds)
            looks.append(found)
            if len(looks) == 2:  # the first fetch's
                for withdrawn in tls.trust.glob("*.pem"):
                    withdrawn.unlink()
                pin(tls, [files(tmp_path / "second", COORDINATOR)])
                look(self, seconds)
            return found

        monkeypatch.setattr(Identity, "_looked_at", interrupted)
        identity.server_credentials()
        in_use = [found for found in shown if found is not None][-1]
        assert in_use == load_trust(tls.trust, FEDERATION).all_roots() != shown[0]


class TestEnd:
    """Certificates that end while both run."""

    @pytest.fixture(autouse=True)
    def _looks_at_every_call(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(identity_module, "_LOOK_SECONDS", 0.0)
        monkeypatch.setattr(counterpart_module, "_PAUSE_SECONDS", 0.0)

    def test_open_connections_go_on_and_new_ones_are_refused(self, tmp_path: Path) -> None:
        """Until the file is renewed, at either end; nothing is started again."""
        authority = draw_authority(FEDERATION)
        long = files(tmp_path / "long", CALLEE, authority), files(tmp_path / "caller", COORDINATOR, authority)
        short = {"callee": CALLEE, "short caller": COORDINATOR}
        made = {
            name: files(tmp_path / name, whom, authority, days=6 / 86_400) for name, whom in short.items()
        }
        meetings = {"callee": (made["callee"], long[1]), "short caller": (long[0], made["short caller"])}
        words = {"callee": "the certificate of party 'callee' at .* has ended", "short caller": OWN_ENDED}
        with ExitStack() as end:
            ends = {}
            for name, (callee, caller) in meetings.items():
                ends[name] = (end.enter_context(served(callee)), counterpart(caller, COORDINATOR))
            links = {name: end.enter_context(opened(*pair)) for name, pair in ends.items()}
            assert [link.call(STOP) for link in links.values()] == [acts.Done()] * 2
            wait_until_ended(made["short caller"])
            assert links["callee"].call(STOP) == acts.Done()
            with pytest.raises(
                AccessError, match=r"^party 'callee': the certificate of coordinator .* ended on .* UTC: draw"
            ):
                links["short caller"].call(
                    STOP
                )  # its connection is open, and its certificate asked at each call
            for name, (address, tls) in ends.items():
                with pytest.raises(AccessError, match=words[name]):
                    ask(address, tls)
                assert not serves(address, LIMITS, tls=tls)
                files(tmp_path / name, short[name], authority)  # renewed
                assert ask(address, tls) == acts.Done()

    def test_its_operator_reads_it_and_a_peer_learns_the_reason(self, tmp_path: Path) -> None:
        """The coordinator does not take the party for dead."""
        authority = draw_authority(FEDERATION)
        short = files(tmp_path / "short", CALLEE, authority, days=3 / 86_400)
        mine = files(tmp_path / "mine", COORDINATOR, authority)
        identity, text = Identity(short, "callee", Role.PASSIVE), list[str]()
        with served(short) as address:
            own: Any = SimpleNamespace(tls=short, party="callee", role=Role.PASSIVE)
            with reminded(own, text.append, get_logger()):
                wait_until_ended(short)
            peer = Peer(name="callee", role=Role.PASSIVE, address=address, token="t" * 32)
            config: Any = SimpleNamespace(
                peers=(peer,), limits=LIMITS, tls=mine, party="coordinator", role=Role.COORDINATOR
            )
            leading: Any = SimpleNamespace(config=config, left_out=())
            with pytest.raises(AccessError, match=r"the certificate of party 'callee' at .* has ended"):
                _check_alive(leading)
        assert [("ends in" in s, "new connections are refused" in s) for s in text] == [
            (True, False),
            (False, True),
        ]
        assert text[-1] == identity.warning()


OWN_ENDED = "closed the connection: this party's certificate .* ended on .* UTC: draw or request another"


def _shown(address: str) -> bytes:
    host, port = address.split(":")
    return ssl.get_server_certificate((host, int(port))).encode()
