"""The gRPC servers of a process: one at each address, with all of its parties there behind it.

The metadata of a call names the party that it is for. Each party has its own callers, tokens and permissions.
"""

import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

from vflens.config import OPERATOR, PartyConfig
from vflens.errors import AccessError, ConfigError
from vflens.protocol.link import Party
from vflens.services.healthcheck import HealthServicer
from vflens.services.identity import identity_of
from vflens.services.metrics_page import Calls
from vflens.services.servicer import ANY_TIME, CALLS, Servicer, Turn
from vflens.types import Role
from vflens.wire.channel import CALLEE_KEY, grpc, listen, new_server

_SPARE_WORKERS = 4  # for health probes and refusals, while every caller has its maximum of open calls
_GRACE_SECONDS = 2.0


class _Held(NamedTuple):
    party: Party
    config: PartyConfig
    servicer: Servicer
    callers: int


def _held(party: Party, config: PartyConfig, log: Any, calls: Calls | None, turn: Turn = ANY_TIME) -> _Held:
    credentials: dict[str, tuple[Role, str]] = {p.name: (p.role, p.token) for p in config.peers}
    if config.operators_token:
        credentials[OPERATOR] = (Role.OPERATOR, config.operators_token)
    servicer = Servicer(party, credentials, log, identity_of(config), calls, turn=turn)
    return _Held(party, config, servicer, len(credentials))


class Hall:
    """Where the parties of a process are served, once it is open; ``shared`` by several, one act is performed
    at a time: side by side they would only wait for the interpreter's lock.
    """

    def __init__(self, *, shared: bool = False) -> None:
        self._turn = threading.Lock() if shared else None
        self._held: dict[str, dict[str, _Held]] = {}  # address → party → what serves it
        self._servers: dict[str, grpc.Server] = {}

    @contextmanager
    def holds(
        self, party: Party, config: PartyConfig, log: Any, calls: Calls | None = None
    ) -> Iterator[None]:
        """Serve ``party`` at its configured address while the block runs and the hall is open; ``calls``
        counts.

        Raises:
            ConfigError: a party of this name is there, or several where one shows a certificate.
        """
        here = self._held.setdefault(config.address, {})
        if party.name in here:
            raise ConfigError(
                f"party {party.name!r} is given twice at {config.address}: give each configuration once"
            )
        if here and any(one.tls for one in (config, *(held.config for held in here.values()))):
            raise ConfigError(
                f"address {config.address!r} is that of party {next(iter(here))!r} too: with [tls] each "
                "party listens at its own"
            )
        here[party.name] = _held(party, config, log, calls, self._turn or ANY_TIME)
        try:
            yield
        finally:
            self._leave(here, party.name, config.address)

    def _leave(self, here: dict[str, _Held], name: str, address: str) -> None:
        """Refuse further acts to the party ``name``, and give its own a moment to end; those of others may
        take long. The last one closes the server.
        """
        if len(here) == 1 and address in self._servers:
            self._servers.pop(address).stop(_GRACE_SECONDS).wait()
        servicer = here.pop(name).servicer
        servicer.ended = True
        if self._turn and servicer.acting and self._turn.acquire(timeout=_GRACE_SECONDS):
            self._turn.release()

    def open(self) -> None:
        """Listen at the addresses of all parties, with gRPC's health service; those that listen go on.

        Raises:
            ConfigError: an address cannot be bound.
        """
        for address, here in self._held.items():
            if here and address not in self._servers:
                self._servers[address] = _started(address, here)


class _Parties(grpc.GenericRpcHandler):
    """Hands each call to the party that it names; one that is alone gets all."""

    def __init__(self, servicers: Mapping[str, Servicer]) -> None:
        self._servicers = dict(servicers)
        self._alone = next(iter(servicers.values())) if len(servicers) == 1 else None

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """The handler of a method; a refusal where the call names no party here, or several."""
        sent = handler_call_details.invocation_metadata or ()
        named = [value for key, value in sent if key == CALLEE_KEY]
        servicer = self._alone or (self._servicers.get(str(named[0])) if len(named) == 1 else None)
        if servicer is not None:
            return servicer.service(handler_call_details)
        called = " and ".join(map(repr, named)) or "nobody"
        error = AccessError(f"the call is for {called}: name one party of this address, as its file does")
        return next(iter(self._servicers.values())).refusal(error)


def _started(address: str, here: Mapping[str, _Held]) -> grpc.Server:
    """A server of the parties ``here``, listening at ``address``."""
    config = next(iter(here.values())).config
    workers = ThreadPoolExecutor(CALLS * sum(held.callers for held in here.values()) + _SPARE_WORKERS)
    server = new_server(workers, config.limits, parties=len(here))
    identity = identity_of(config)
    health = HealthServicer(identity, lambda: [held.party.moved for held in [*here.values()]])
    parties = _Parties({name: held.servicer for name, held in here.items()})
    server.add_generic_rpc_handlers((health, parties))
    listen(server, address, identity)
    server.start()
    return server


def start_server(party: Party, config: PartyConfig, log: Any, calls: Calls | None = None) -> grpc.Server:
    """Serve ``party`` alone; see :meth:`Hall.holds` and :meth:`Hall.open`."""
    return _started(config.address, {party.name: _held(party, config, log, calls)})
