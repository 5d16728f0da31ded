"""The page of figures: what it counts, where it listens, and that it is off unless configured."""

from __future__ import annotations

import re
import socket
import struct
import threading
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest
from laboratory import close, federation
from oneprocess import LocalFederation

from vflens.config import MetricsPage
from vflens.errors import AccessError, ConfigError
from vflens.protocol.acts import Describe
from vflens.services import metrics_page as metrics_page_module
from vflens.services.hall import start_server
from vflens.services.metrics_page import Calls, calls_of, metrics_page, page
from vflens.services.process import link_to

SAMPLE = re.compile(r"^(\w+)(\{.*\})? (\S+)$")


def samples(text: str) -> dict[str, float]:
    """The samples of a page in Prometheus' text format; each family has a type before its first sample."""
    found: dict[str, float] = {}
    typed: set[str] = set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            typed.add(line.split()[2])
            continue
        matched = SAMPLE.match(line)
        assert matched, line
        name, labels, value = matched.groups()
        assert name in typed or name.rpartition("_")[0] in typed
        found[name + (labels or "")] = float(value)
    return found


@pytest.fixture
def local(tmp_path: Path) -> LocalFederation:
    return federation(tmp_path, network={"transport": "unix"})


def test_the_page_follows_the_run(local: LocalFederation) -> None:
    passive = local.passive["passive"]
    before = samples(page(passive, Calls()))
    assert before['vflens_party{party="passive",role="passive",run="tiny/run"}'] == 1
    assert before['vflens_phase{phase="alignment"}'] == 1
    assert before["vflens_training_steps_done"] == before["vflens_received_bytes_total"] == 0
    local.run()
    after = samples(page(passive, Calls()))
    assert after['vflens_phase{phase="finished"}'] == 1
    assert after["vflens_training_steps_done"] == after["vflens_training_steps"] == 12
    assert after["vflens_received_messages_total"] == 12
    assert after["vflens_received_bytes_total"] == sum(r.nbytes for r in passive.transcript)


def test_calls_their_bytes_and_refused_callers_are_counted(local: LocalFederation) -> None:
    passive, config, calls = local.passive["passive"], local.coordinator.config, Calls()
    peer = next(p for p in config.peers if p.name == "passive")
    server = start_server(passive, passive.config, passive.log, calls)
    good, bad = link_to(peer, config), link_to(peer.model_copy(update={"token": "wrong-token-1"}), config)
    try:
        for _ in range(2):
            good.call(Describe("tiny/run"))
        with pytest.raises(AccessError):
            bad.call(Describe("tiny/run"))
    finally:
        good.close()
        bad.close()
        server.stop(0).wait()
    found = samples("\n".join(calls.lines()))
    assert found['vflens_call_seconds_count{act="Describe"}'] == 2
    assert found['vflens_call_seconds_sum{act="Describe"}'] > 0
    assert found["vflens_request_bytes_total"] == 2 * len(b"\n\x08tiny/run")
    assert found["vflens_reply_bytes_total"] > 0
    assert found["vflens_refused_calls_total"] == 1
    assert found["vflens_last_refusal_timestamp_seconds"] > 1.7e9
    close(local)


def test_the_page_is_served_on_loopback_and_nothing_else_is(local: LocalFederation) -> None:
    passive = local.passive["passive"]
    with metrics_page(passive, Calls()) as port:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            assert samples(answer.read().decode())["vflens_training_steps_done"] == 0
        with pytest.raises(urllib.error.HTTPError, match="404") as refused:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60)
        refused.value.close()
        taken = passive.config.model_copy(update={"metrics": MetricsPage(port=port)})
        passive.config = taken
        with (
            pytest.raises(ConfigError, match=f"^metrics.port {port} cannot be bound .*: choose another$"),
            metrics_page(passive, Calls()),
        ):
            pass
    close(local)


def connect(port: int, sent: bytes) -> socket.socket:
    """A client that has sent ``sent``."""
    client = socket.create_connection(("127.0.0.1", port), timeout=60)
    with suppress(ConnectionError):  # refused already
        client.sendall(sent)
    return client


def reply(client: socket.socket) -> bytes:
    """All that comes until the connection ends, however it ends."""
    with client:
        try:
            return b"".join(iter(lambda: client.recv(1 << 16), b""))
        except ConnectionResetError:
            return b""


WHOLE = b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
BEGUN = b"GET /metrics HTTP/1.1\r\nX: "


def test_a_slow_client_keeps_neither_scrapers_nor_the_end_waiting(
    local: LocalFederation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics_page_module, "_REQUEST_SECONDS", 600.0)
    with metrics_page(local.passive["passive"], Calls()) as port:
        slow = connect(port, BEGUN)
        assert reply(connect(port, WHOLE)).startswith(b"HTTP/1.0 200 ")
    assert reply(slow) == b""
    close(local)


def test_a_request_has_a_deadline_however_much_comes(
    local: LocalFederation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics_page_module, "_REQUEST_SECONDS", 0.3)
    ended = threading.Event()

    def drip(client: socket.socket) -> None:
        with client:
            try:
                while not ended.wait(0.05):
                    client.sendall(b"x")
            except OSError:
                ended.set()

    with metrics_page(local.passive["passive"], Calls()) as port:
        thread = threading.Thread(target=drip, args=(connect(port, BEGUN),))
        thread.start()
        closed = ended.wait(60)
        ended.set()
        thread.join()
    assert closed
    close(local)


def test_requests_are_bounded_in_number(local: LocalFederation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_page_module, "_MOST_REQUESTS", 2)
    with metrics_page(local.passive["passive"], Calls()) as port:
        slow = [connect(port, BEGUN) for _ in range(2)]
        assert reply(connect(port, WHOLE)) == b""
        for client in slow:
            client.sendall(b"y\r\nHost: localhost\r\n\r\n")
            assert reply(client).startswith(b"HTTP/1.0 200 ")
        assert reply(connect(port, WHOLE)).startswith(b"HTTP/1.0 200 ")
    close(local)


def test_a_client_that_resets_shows_nothing(
    local: LocalFederation, capfd: pytest.CaptureFixture[str]
) -> None:
    with metrics_page(local.passive["passive"], Calls()) as port:
        client = connect(port, BEGUN)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()  # with a reset
        assert reply(connect(port, WHOLE)).startswith(b"HTTP/1.0 200 ")
    for thread in threading.enumerate():
        if "process_request" in thread.name:
            thread.join(60)
    assert capfd.readouterr().err == ""
    close(local)


@pytest.mark.parametrize(
    ("host", "code"),
    [(h, b"200") for h in ("127.0.0.1", "localhost:9464", "LOCALHOST", "[::1]:1")]
    + [(h, b"403") for h in ("evil.example", "127.0.0.1.evil.example", "localhost@evil", "", "::1")],
)
def test_only_names_of_this_machine_are_answered(local: LocalFederation, host: str, code: bytes) -> None:
    with metrics_page(local.passive["passive"], Calls()) as port:
        sent = f"GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
        answer = reply(connect(port, sent))
    assert answer.split()[1] == code
    assert (b"vflens_" in answer) == (code == b"200")
    close(local)


def test_without_a_port_nothing_listens_and_nothing_is_counted(local: LocalFederation) -> None:
    passive = local.passive["passive"]
    assert calls_of(passive.config) is None
    with metrics_page(passive, None) as port:
        assert port == 0
    close(local)
