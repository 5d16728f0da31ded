"""Parties that die in the middle of a run and come back, in this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from laboratory import close, estimates, finish, trained, transcripts
from oneprocess import LocalFederation

from vflens.clients.vertical.active import ActiveParty
from vflens.config import LeaderConfig, LedConfig, PartyConfig
from vflens.coordinator.horizontal.server import Server
from vflens.coordinator.vertical.coordinator import Coordinator
from vflens.errors import UnavailableError, VflensError
from vflens.experiments.run.in_process import Joined
from vflens.protocol.acts import Act, Step
from vflens.protocol.link import Handlers, Link, Party, PlainStream
from vflens.services.hall import start_server
from vflens.services.members import data_party, leader
from vflens.services.process import link_to
from vflens.types import Role


class Interrupted(Exception):  # noqa: N818 - not an error
    """The run is cut here."""


class Around(Link):
    """A link around another: what a test changes of it is written in a subclass."""

    def __init__(self, inner: Link) -> None:
        self.name, self.inner = inner.name, inner

    def submit(self, act: Act[Any]) -> Any:
        return self.inner.submit(act)

    def stream(self, act: type[Act[Any]]) -> Any:
        return PlainStream(self)


class Recorder(Around):
    """Keeps every act that passed and its reply."""

    def __init__(self, inner: Link) -> None:
        super().__init__(inner)
        self.seen: list[tuple[Act[Any], Any]] = []

    def submit(self, act: Act[Any]) -> Any:
        reply = super().submit(act)
        self.seen.append((act, reply.result()))
        return reply


class Killed(BaseException):
    """The acting party dies here: no handler of errors sees it, as with SIGKILL."""


def lose_request(ask: Callable[[], Any]) -> Any:
    raise UnavailableError("the request was lost")


def lose_reply(ask: Callable[[], Any]) -> Any:
    """The party does what it is asked for; the caller does not learn it."""
    ask()
    raise UnavailableError("the reply was lost")


def delay(ask: Callable[[], Any]) -> Any:
    time.sleep(0.01)
    return ask()


def duplicate(ask: Callable[[], Any]) -> Any:
    ask()
    return ask()


#: What may happen to a request on its way.
LINK_FAULTS = {f.__name__: f for f in (lose_request, lose_reply, delay, duplicate)}


class Faulty(Around):
    """Lets ``fault`` happen to the ``number``-th request of ``kind``, counted from 1."""

    def __init__(
        self, inner: Link, kind: type[Act[Any]], number: int, fault: Callable[[Callable[[], Any]], Any]
    ) -> None:
        super().__init__(inner)
        self._kind, self._left, self._fault = kind, number, fault

    def submit(self, act: Act[Any]) -> Any:
        self._left -= isinstance(act, self._kind)
        if self._left or not isinstance(act, self._kind):
            return super().submit(act)
        reply: Future[Any] = Future()
        try:
            reply.set_result(self._fault(lambda: self.inner.submit(act).result()))
        except VflensError as error:
            reply.set_exception(error)
        return reply


class Fuse(Around):
    """Lets so many training steps through; the next never arrives."""

    def __init__(self, inner: Link, steps: int) -> None:
        super().__init__(inner)
        self.left = steps

    def submit(self, act: Act[Any]) -> Any:
        if isinstance(act, Step):
            if not self.left:
                raise Interrupted
            self.left -= 1
        return super().submit(act)


def train_until(local: LocalFederation, steps: int) -> None:
    """Train and stop before the first passive party or client receives step ``steps``."""
    links, leader = aggregator(local).links, trainer(local)
    first = leader.prepared.parties[0] if isinstance(leader, Server) else leader.aligned.passive[0]
    links[first.name] = fuse = Fuse(links[first.name], steps)
    with pytest.raises((Interrupted, VflensError)):  # over gRPC it is one of ours
        leader.train()
    assert not fuse.left
    links[first.name] = fuse.inner


def trainer(local: LocalFederation) -> Coordinator | Server:
    """The leader of either setting."""
    leader = local.leader
    assert isinstance(leader, Coordinator | Server)
    return leader


def aggregator(local: LocalFederation) -> Coordinator | ActiveParty | Server:
    """Who asks for embeddings, updates or openings."""
    if isinstance(local.leader, Server):
        return local.leader
    return local.active if local.coordinator.aligned.led_by_active else local.coordinator


#: The party whose code runs, in this thread.
acting: ContextVar[str] = ContextVar("acting")


@contextmanager
def acts_as(name: str) -> Iterator[None]:
    token = acting.set(name)
    try:
        yield
    finally:
        acting.reset(token)


class Served(Party):
    """The party that answers to a name now: the first one, and after its accident the one in its place.

    One that is killed while it answers does not answer any more, until another is in its place.
    """

    def __init__(self, parties: Mapping[str, Party], name: str) -> None:
        self._parties, self.name = parties, name
        self.role, self.access = self._now.role, self._now.access
        self._killed: Party | None = None

    @property
    def _now(self) -> Party:
        return self._parties[self.name]

    def handlers(self) -> Handlers:
        return self._now.handlers()

    def perform(self, act: Act[Any], caller: str, caller_role: Role) -> Any:
        return self._alive(lambda: self._now.perform(act, caller, caller_role))

    def settle(self) -> None:
        self._alive(self._now.settle)

    def _alive(self, work: Callable[[], Any]) -> Any:
        with acts_as(self.name):
            try:
                if self._killed is not self._now:
                    return work()
            except Killed:
                self._killed = self._now
        raise UnavailableError(f"party {self.name!r} was killed")


def _stop(server: Any) -> None:
    server.stop(0).wait()


@contextmanager
def over_grpc(
    local: LocalFederation, served: Callable[[Mapping[str, Party], str], Party] = Served
) -> Iterator[None]:
    """Serve all parties at their addresses, and let them reach each other there."""
    with ExitStack() as end:
        for member in local.members():
            server = start_server(served(local.parties, member.name), member.config, member.log)
            end.callback(partial(_stop, server))
        for member in local.members():
            for peer in member.config.peers:
                member.links[peer.name] = made = link_to(peer, member.config)
                end.callback(made.close)
        yield


def rebuild(local: LocalFederation, name: str) -> None:
    """Let the party ``name`` die, and start it again on its folder."""
    old = local.parties[name]
    old.close()
    new = anew(old, old.links)
    new.resume()
    local.join(new)


def anew(old: Joined, links: Mapping[str, Link]) -> Joined:
    """Another party with the configuration of ``old``, in the same folder."""
    return started(old.config, links)


def started(config: PartyConfig, links: Mapping[str, Link]) -> Joined:
    """The party of ``config``, as its process makes it."""
    if isinstance(config, LeaderConfig):
        return leader(config, links, lambda stage, done, total: None)
    assert isinstance(config, LedConfig)
    return data_party(config, links)


def rebuild_all(local: LocalFederation) -> None:
    for member in list(local.members()):
        rebuild(local, member.name)


REBUILD: dict[str, Callable[[LocalFederation], None]] = {
    **{name: partial(rebuild, name=name) for name in ("passive", "active", "coordinator")},
    "everybody": rebuild_all,
}
Outcome = tuple[dict[str, bytes], dict[str, str], dict[str, bytes]]


def restarted(local: LocalFederation, home: Path, *, steps: int) -> Outcome:
    """What ``local`` ends with over gRPC, all of whose parties begin anew before step ``steps``."""
    with over_grpc(local):
        local.coordinator.prepare()
        train_until(local, steps)
        rebuild_all(local)
        local.coordinator.train()
        return outcome(local, home)


def outcome(local: LocalFederation, home: Path) -> Outcome:
    finish(local)
    close(local)
    return trained(local), transcripts(home), estimates(home)
