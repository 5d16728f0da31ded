"""What a new connection costs, with certificates and without: channel, handshake, one call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import pytest

from benchmarks.ratios import alternate, report
from vflens.config import Limits, Tls
from vflens.services.certificates.make import deal_certificates
from vflens.services.healthcheck import HealthServicer, serves
from vflens.types import Role
from vflens.wire.channel import listen, new_server
from vflens.wire.tls.counterpart import Counterpart
from vflens.wire.tls.identity import Identity

CONNECTIONS = 100
ROLES = {"active": Role.ACTIVE, "passive": Role.PASSIVE}
CLOCKS = {"wall clock": perf_counter, "processor time of both ends": process_time}


@pytest.mark.benchmark(group="tls")
@pytest.mark.parametrize("clock", CLOCKS)
def test_a_new_connection(benchmark: Any, tmp_path: Path, clock: str) -> None:
    """A channel as a health check opens one; server and client run in this process."""
    deal_certificates("benchmark", ROLES, {party: tmp_path / party for party in ROLES})
    server, client = (_identity(tmp_path / party, role) for party, role in ROLES.items())
    expected = Counterpart(client, "active", Role.ACTIVE)
    with _serving(None) as plain, _serving(server) as secure:
        candidates = {
            "no TLS": partial(_connecting, plain, None, CLOCKS[clock]),
            "mutual TLS": partial(_connecting, secure, expected, CLOCKS[clock]),
        }
        figures = benchmark.pedantic(lambda: alternate(candidates), rounds=1)
    report(benchmark, f"a new connection and a call, {clock}", figures, "no TLS", "ms")


def _identity(folder: Path, role: Role) -> Identity:
    tls = folder / "tls"
    files = Tls(certificate=tls / "certificate.pem", key=tls / "key.pem", trust=tls / "authority.pem")
    return Identity(files, str(role), role)


@contextmanager
def _serving(identity: Identity | None) -> Iterator[str]:
    """The address of a health service."""
    with ThreadPoolExecutor(4) as workers:
        server = new_server(workers, Limits())
        server.add_generic_rpc_handlers((HealthServicer(),))
        port = listen(server, "127.0.0.1:0", identity)
        server.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.stop(0).wait()


def _connecting(address: str, tls: Counterpart | None, clock: Callable[[], float]) -> float:
    """Milliseconds of one of many connections, one after the other."""
    began = clock()
    for _ in range(CONNECTIONS):
        assert serves(address, Limits(), tls=tls)
    return (clock() - began) / CONNECTIONS * 1e3
