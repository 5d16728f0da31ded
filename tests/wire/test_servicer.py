"""Callers who mean harm before they have said anything: none of them may hold a thread or fill a log."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from laboratory import THREE, federation
from processes import eventually
from structlog import get_logger
from structlog.testing import capture_logs
from stubparty import CALLERS, LIMITS, Stub, raising, served, short_folder

from vflens.errors import AccessError, StateError, StorageError, UnavailableError, VflensError
from vflens.protocol import acts
from vflens.services.hall import start_server
from vflens.services.healthcheck import HealthServicer, serves
from vflens.services.servicer import CALLS, Servicer
from vflens.types import Role
from vflens.wire import channel as channel_module
from vflens.wire.channel import PARTY_KEY, TOKEN_KEY, grpc
from vflens.wire.grpc_link import GrpcLink
from vflens.wire.messages import RPCS


def _answer(act: acts.Act[Any]) -> Any:
    return acts.Receipt(0, 0, {}) if isinstance(act, acts.Submission) else acts.Done()


STUB = Stub(_answer, Role.PASSIVE)


@contextmanager
def _small_server() -> Iterator[str]:
    """A server of two threads."""
    with short_folder() as folder, ThreadPoolExecutor(2) as workers:
        server = grpc.server(workers)
        server.add_generic_rpc_handlers((Servicer(STUB, CALLERS, None), HealthServicer()))
        server.add_insecure_port(f"unix:{folder}/s")
        server.start()
        try:
            yield f"unix:{folder}/s"
        finally:
            server.stop(0).wait()


@contextmanager
def _unfinished(
    address: str, path: str, count: int, metadata: tuple[tuple[str, str], ...] = ()
) -> Iterator[list[Any]]:
    """Calls of ``path`` that were opened and whose request never comes."""
    end = threading.Event()

    def never() -> Iterator[bytes]:
        end.wait()
        yield from ()

    with grpc.insecure_channel(address) as channel:
        try:
            open_call: Any = channel.stream_unary(path)
            yield [open_call.future(never(), metadata=metadata) for _ in range(count)]
        finally:
            end.set()


@pytest.mark.parametrize(
    "path",
    [
        "/vflens.DataParty/Stop",
        "/vflens.PassiveParty/Forward",
        "/grpc.health.v1.Health/Check",
        "/grpc.health.v1.Health/Watch",
    ],
)
def test_strangers_who_open_calls_and_say_nothing_hold_no_thread(path: str) -> None:
    with _small_server() as address, _unfinished(address, path, 10) as calls:
        for call in calls:
            call.exception(timeout=60)  # it has ended, one way or the other
        assert serves(address, LIMITS, 5.0)
        link = GrpcLink(
            "callee", address, caller="coordinator", token=CALLERS["coordinator"][1], limits=LIMITS
        )
        assert link.call(acts.Stop("run")) == acts.Done()
        link.close()


def test_without_tls_the_health_service_says_that_it_serves_and_no_more() -> None:
    """Whoever connects knows as much: no party and no run is named, whatever is asked for."""
    with _small_server() as address, grpc.insecure_channel(address) as channel:
        check: Any = channel.unary_unary("/grpc.health.v1.Health/Check")
        serving = HealthCheckResponse(status=HealthCheckResponse.SERVING).SerializeToString()
        for service in ("", "callee", "vflens.PassiveParty"):
            assert check(HealthCheckRequest(service=service).SerializeToString(), timeout=60) == serving
        listed: Any = channel.unary_unary("/grpc.health.v1.Health/List")
        with pytest.raises(grpc.RpcError) as refusal:
            listed(b"", timeout=60)
        assert refusal.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_the_health_service_says_that_a_run_has_moved_and_not_how_far() -> None:
    """A party knows by it that its leader does something, though nothing for the party."""
    moved = [("training", 1), ("training", 1), ("training", 2)]
    with short_folder() as folder, ThreadPoolExecutor(2) as workers:
        server, coming = grpc.server(workers), iter(moved)
        server.add_generic_rpc_handlers((HealthServicer(moved=lambda: next(coming)),))
        server.add_insecure_port(f"unix:{folder}/s")
        server.start()
        first, again, later = (serves(f"unix:{folder}/s", LIMITS, 60.0) for _ in moved)
        server.stop(0).wait()
    assert first == again != later
    assert all(re.fullmatch("[0-9a-f]{16}", text) for text in (first, later))


def test_a_health_service_that_says_nothing_of_its_run_serves() -> None:
    """That of an earlier version."""
    handler: Any = grpc.unary_unary_rpc_method_handler(
        lambda request, context: HealthCheckResponse(status=HealthCheckResponse.SERVING),
        response_serializer=HealthCheckResponse.SerializeToString,
    )
    with short_folder() as folder, ThreadPoolExecutor(2) as workers:
        server = grpc.server(workers)
        service = grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Check": handler})
        server.add_generic_rpc_handlers((service,))
        server.add_insecure_port(f"unix:{folder}/s")
        server.start()
        assert [serves(f"unix:{folder}/s", LIMITS, 60.0) for _ in range(2)] == ["serves", "serves"]
        server.stop(0).wait()


def test_a_peer_that_opens_calls_and_says_nothing_leaves_threads_to_others() -> None:
    """With a valid token; further calls are refused at once, and accepted when the first have ended."""
    metadata = ((PARTY_KEY, "active"), (TOKEN_KEY, CALLERS["active"][1]))
    path = RPCS[acts.Submission].path
    with served(STUB, log=get_logger()) as address:
        with _unfinished(address, path, 3 * CALLS, metadata) as calls:
            eventually(lambda: sum(call.done() for call in calls) >= 2 * CALLS)
            refused = [call for call in calls if call.done()]
            words = f"caller 'active' has {CALLS} calls open at 'callee': wait for their answers"
            assert {call.exception().details() for call in refused} == {words}
            link = GrpcLink(
                "callee", address, caller="coordinator", token=CALLERS["coordinator"][1], limits=LIMITS
            )
            assert link.call(acts.Stop("run")) == acts.Done()
            link.close()
            assert sum(call.done() for call in calls) == 2 * CALLS
        link = GrpcLink("callee", address, caller="active", token=CALLERS["active"][1], limits=LIMITS)
        submission = acts.Submission("run", "active", "predict", np.zeros(0, np.int32), guesses=())
        eventually(lambda: _taken(link, submission))
        link.close()


def test_a_call_closed_without_a_request_is_no_empty_message() -> None:
    """All fields of a Stop may be at their defaults: of no bytes it would end the run."""
    asked: list[acts.Act[Any]] = []

    def answer(act: acts.Act[Any]) -> acts.Done:
        asked.append(act)
        return acts.Done()

    metadata = ((PARTY_KEY, "coordinator"), (TOKEN_KEY, CALLERS["coordinator"][1]))
    path = RPCS[acts.Stop].path
    with served(Stub(answer, Role.PASSIVE)) as address, grpc.insecure_channel(address) as channel:
        call: Any = channel.stream_unary(path)
        with pytest.raises(grpc.RpcError) as refused:
            call(iter(()), metadata=metadata, timeout=60)
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert refused.value.details() == f"a call of {path} was closed without a request: send exactly one"
        assert not asked
        call(iter([b""]), metadata=metadata, timeout=60)
        assert asked == [acts.Stop("")]


def test_three_thieves_that_say_nothing_leave_threads_to_the_coordinator(tmp_path: Path) -> None:
    """Every passive party may call the active one: a real server has threads for all of them."""
    active = federation(tmp_path, parties=THREE).active
    tokens, path = {p.name: p.token for p in active.config.peers}, RPCS[acts.Submission].path
    with short_folder() as folder, ExitStack() as end:
        address = f"unix:{folder}/s"
        config = active.config.model_copy(update={"address": address, "tls": None})
        server = start_server(active, config, get_logger())
        end.callback(lambda: server.stop(0).wait())
        for thief in THREE["passive"]:
            metadata = ((PARTY_KEY, thief), (TOKEN_KEY, tokens[thief]))
            calls = end.enter_context(_unfinished(address, path, CALLS + 1, metadata))
            _wait_until_held(calls)
        link = GrpcLink("active", address, caller="coordinator", token=tokens["coordinator"], limits=LIMITS)
        end.callback(link.close)
        assert link.call(acts.Describe("tiny/run")).name == "active"


def _wait_until_held(calls: list[Any]) -> None:
    """Until one of ``calls`` is refused, the one too many: each of the others then has its thread."""
    eventually(lambda: any(call.done() for call in calls))


def _taken(link: GrpcLink, act: acts.Act[Any]) -> bool:
    try:
        link.call(act)
    except StateError:
        return False
    return True


def test_refusals_are_logged_shortly_and_then_counted() -> None:
    with capture_logs() as logged, served(STUB) as address:
        link = GrpcLink("callee", address, caller="x" * 5000, token="t" * 20, limits=LIMITS)
        for _ in range(1100):
            with pytest.raises(AccessError, match=r"^party 'callee': caller 'xxx"):
                link.call(acts.Describe("run"))
        link.close()
    numbers = [entry["number"] for entry in logged if entry["event"] == "refused"]
    assert sorted(numbers) == [*range(1, 1001), 1024]
    assert max(len(entry["error"]) for entry in logged) < 700


def test_a_server_with_too_many_calls_open_refuses_further_ones_in_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(channel_module, "_MOST_CALLS", 2)
    metadata = ((PARTY_KEY, "active"), (TOKEN_KEY, CALLERS["active"][1]))
    words = (
        r"^party 'callee' has more calls open than it answers: look at its log for who calls, then ask again$"
    )
    with served(STUB) as address, _unfinished(address, RPCS[acts.Submission].path, 3, metadata) as calls:
        eventually(lambda: any(call.done() for call in calls))  # the third: two are taken
        link = GrpcLink(
            "callee", address, caller="coordinator", token=CALLERS["coordinator"][1], limits=LIMITS
        )
        with pytest.raises(UnavailableError, match=words):
            link.call(acts.Stop("run"))
        link.close()


def test_raw_connections_are_bounded_and_silent_ones_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strangers who connect and say nothing took every file that the process may open."""
    monkeypatch.setattr(channel_module, "_MOST_CONNECTIONS", 20)
    monkeypatch.setattr(channel_module, "_HANDSHAKE_MS", 1_000)
    with ExitStack() as end, served(STUB, tcp=True) as address:
        host, port = address.split(":")
        strangers = [socket.create_connection((host, int(port)), timeout=60) for _ in range(60)]
        for stranger in strangers:
            end.enter_context(stranger)
            stranger.setblocking(False)
        eventually(lambda: sum(map(_is_closed, strangers)) >= 40)
        eventually(lambda: all(map(_is_closed, strangers)))
        link = GrpcLink(
            "callee", address, caller="coordinator", token=CALLERS["coordinator"][1], limits=LIMITS
        )
        assert link.call(acts.Stop("run")) == acts.Done()
        link.close()


def _is_closed(connection: socket.socket) -> bool:
    """Whether the other end closed the ``connection``; what it said before is read."""
    try:
        while connection.recv(1024):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    return True


@pytest.mark.parametrize("kind", [AccessError, StorageError])
def test_a_peer_chooses_neither_the_exit_code_of_its_caller_nor_whose_words_they_are(
    kind: type[VflensError],
) -> None:
    """After some codes a service is not started again; a sentence may pretend to be of this machine."""
    with served(Stub(raising(kind("the disk is full: free space")), Role.PASSIVE)) as address:
        link = GrpcLink(
            "callee", address, caller="coordinator", token=CALLERS["coordinator"][1], limits=LIMITS
        )
        with pytest.raises(kind) as refused:
            link.call(acts.Stop("run"))
        link.close()
    assert refused.value.exit_code == 13
    assert str(refused.value) == "party 'callee': the disk is full: free space"
