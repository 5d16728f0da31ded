"""Callers who mean harm before they have said anything: none of them may hold a thread or fill a log."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs
from stubparty import CALLERS, LIMITS, Stub, served, short_folder

from services.healthcheck import HealthServicer, serves
from services.servicer import Servicer
from vfl import acts
from vfl.errors import AccessError
from vfl.types import Role
from vfl.wire.channel import grpc
from vfl.wire.grpc_link import GrpcLink

STUB = Stub(lambda act: acts.Done(), Role.PASSIVE)


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
def _unfinished(address: str, path: str, count: int) -> Iterator[list[Any]]:
    """Calls of ``path`` that were opened and whose request never comes."""
    end = threading.Event()

    def never() -> Iterator[bytes]:
        end.wait()
        yield from ()

    with grpc.insecure_channel(address) as channel:
        try:
            open_call: Any = channel.stream_unary(path)
            yield [open_call.future(never()) for _ in range(count)]
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
            call.exception(timeout=10)  # it has ended, one way or the other
        assert serves(address, LIMITS, 5.0)
        link = GrpcLink(
            "callee", address, caller="coordinator", token=CALLERS["coordinator"][1], limits=LIMITS
        )
        assert link.call(acts.Stop("run")) == acts.Done()
        link.close()


def test_refusals_are_logged_shortly_and_then_counted() -> None:
    with capture_logs() as logged, served(STUB) as address:
        link = GrpcLink("callee", address, caller="x" * 5000, token="t" * 20, limits=LIMITS)
        for _ in range(1100):
            with pytest.raises(AccessError, match=r"^caller 'xxx"):
                link.call(acts.Describe("run"))
        link.close()
    numbers = [entry["number"] for entry in logged if entry["event"] == "refused"]
    assert sorted(numbers) == [*range(1, 1001), 1024]
    assert max(len(entry["error"]) for entry in logged) < 700
