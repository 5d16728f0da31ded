"""Parties that meet over mutual TLS at a real port."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import numpy as np
from certs import subject
from structlog import get_logger
from stubparty import CALLERS, LIMITS, Stub

from vflens.config import Tls
from vflens.protocol import acts
from vflens.services.healthcheck import HealthServicer
from vflens.services.servicer import Servicer
from vflens.types import Role
from vflens.wire.channel import grpc, listen, new_server
from vflens.wire.grpc_link import GrpcLink
from vflens.wire.tls.counterpart import Counterpart
from vflens.wire.tls.identity import Identity
from vflens.wire.tls.subject import Subject
from vflens.wire.tls.trust import read_certificates

CALLEE = subject("callee", Role.PASSIVE)
COORDINATOR = subject("coordinator", Role.COORDINATOR)
ACTIVE = subject("active", Role.ACTIVE)
STOP = acts.Stop("run")


def _answer(act: acts.Act[Any]) -> Any:
    if isinstance(act, acts.Query):
        scores = np.log([[0.25, 0.75]])
        return acts.Answers(np.zeros(1, np.int32), ("c1",), ("no", "yes"), scores)
    return acts.Done()


@contextmanager
def served(tls: Tls, whom: Subject = CALLEE) -> Iterator[str]:
    """The party ``whom``, which answers everything."""
    with ThreadPoolExecutor(8) as workers:
        server = new_server(workers, LIMITS)
        identity = Identity(tls, whom.party, whom.role)
        party = Stub(_answer, whom.role)
        servicer = Servicer(party, CALLERS, get_logger(), identity)
        server.add_generic_rpc_handlers((servicer, HealthServicer(identity)))
        port = listen(server, "127.0.0.1:0", identity)
        server.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.stop(0).wait()


def counterpart(tls: Tls, whom: Subject, peer: Subject = CALLEE) -> Counterpart:
    return Counterpart(Identity(tls, whom.party, whom.role), peer.party, peer.role)


def ask(address: str, tls: Counterpart | None, caller: str = "coordinator") -> acts.Done:
    """One call with a good token."""
    link = GrpcLink("callee", address, caller=caller, token=CALLERS[caller][1], limits=LIMITS, tls=tls)
    try:
        return link.call(STOP)
    finally:
        link.close()


def raw_call(channel: grpc.Channel) -> None:
    """A call with neither name nor token."""
    method: Any = channel.unary_unary("/vflens.DataParty/Stop")
    method(b"", timeout=60)


@contextmanager
def opened(address: str, tls: Counterpart) -> Iterator[GrpcLink]:
    """A link of the coordinator, which keeps its connection."""
    token = CALLERS["coordinator"][1]
    link = GrpcLink("callee", address, caller="coordinator", token=token, limits=LIMITS, tls=tls)
    try:
        yield link
    finally:
        link.close()


def wait_until_ended(tls: Tls) -> None:
    (certificate,) = read_certificates(tls.certificate)
    left = certificate.not_valid_after_utc - datetime.now(UTC)
    time.sleep(max(0.0, left.total_seconds()) + 1.1)  # dates have whole seconds
