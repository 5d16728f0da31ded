"""Parties that die in the middle of a run and come back, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from laboratory import close, estimates, finish, trained, transcripts

from vflens.clients.active import ActiveParty
from vflens.clients.passive import PassiveParty
from vflens.coordinator.coordinator import Coordinator
from vflens.errors import VflensError
from vflens.experiments.run.in_process import LocalFederation
from vflens.protocol.acts import Act, Step
from vflens.protocol.link import Handlers, InProcessLink, Link, Party
from vflens.services.process import link_to, start_server
from vflens.types import Role
from vflens.wire.grpc_link import GrpcLink


class Interrupted(Exception):  # noqa: N818 - not an error
    """The run is cut here."""


class Fuse(InProcessLink):
    """Lets so many training steps through; the next never arrives."""

    def __init__(self, inner: Link, steps: int) -> None:
        assert isinstance(inner, InProcessLink)
        super().__init__(inner.name, inner._caller, inner._caller_role)
        self.party, self.inner, self.left = inner.party, inner, steps

    def submit(self, act: Act[Any]) -> Any:
        if isinstance(act, Step):
            if not self.left:
                raise Interrupted
            self.left -= 1
        return self.inner.submit(act)


def train_until(local: LocalFederation, steps: int) -> None:
    """Train and stop before the first passive party receives step ``steps``."""
    links = aggregator(local)._passive
    links[0] = fuse = Fuse(links[0], steps)
    with pytest.raises((Interrupted, VflensError)):  # over gRPC it is one of ours
        local.coordinator.train()
    assert not fuse.left
    links[0] = fuse.inner


def aggregator(local: LocalFederation) -> Coordinator | ActiveParty:
    """Who asks the passive parties for their embeddings."""
    return local.active if local.coordinator.aligned.direct else local.coordinator


class Served(Party):
    """Whoever stands behind a server now: the party, and after its accident the one built in its place."""

    def __init__(self, party: Party) -> None:
        self.name, self.role, self.access, self.party = party.name, party.role, party.access, party

    def handlers(self) -> Handlers:
        return self.party.handlers()

    def perform(self, act: Act[Any], caller: str, caller_role: Role) -> Any:
        return self.party.perform(act, caller, caller_role)

    def settle(self) -> None:
        self.party.settle()


class WireLink(InProcessLink):
    """A link over gRPC to a :class:`Served` party, which is changed as that of a link in process is."""

    def __init__(self, caller: InProcessLink, served: Served, link: GrpcLink) -> None:
        self._served, self._link = served, link
        super().__init__(caller.name, caller._caller, caller._caller_role)

    @property
    def party(self) -> Party:
        return self._served.party

    @party.setter
    def party(self, party: Party) -> None:
        self._served.party = party

    def submit(self, act: Act[Any]) -> Any:
        return self._link.submit(act)

    def call(self, act: Act[Any]) -> Any:
        return self._link.call(act)

    def stream(self, act: type[Act[Any]]) -> Any:
        return self._link.stream(act)


def _stop(server: Any) -> None:
    server.stop(0).wait()


@contextmanager
def over_grpc(local: LocalFederation) -> Iterator[None]:
    """Serve all parties at their addresses, and let them reach each other there."""
    with ExitStack() as end:
        served = {member.name: Served(member) for member in local.members()}
        for member in local.members():
            server = start_server(served[member.name], member.config, member.log)
            end.callback(partial(_stop, server))

        def wired(link: Link) -> InProcessLink:
            assert isinstance(link, InProcessLink)
            config = next(m.config for m in local.members() if m.name == link._caller)
            peer = next(p for p in config.peers if p.name == link.name)
            made = link_to(peer, config)
            end.callback(made.close)
            local._joined.append(WireLink(link, served[link.name], made))
            return local._joined[-1]

        local.links = {name: wired(link) for name, link in local.links.items()}
        coordinator, active = local.coordinator, local.active
        coordinator._links = local.links
        coordinator._passive = [local.links[link.name] for link in coordinator._passive]
        coordinator._active = local.links[active.name]
        active._coordinator = wired(active._coordinator)
        targets = {name: wired(link) for name, link in active.adversary._targets.items()}
        active.adversary._targets = targets
        active._passive = [targets[name] for name in sorted(targets)]
        for passive in local.passive.values():
            passive._links = {name: wired(link) for name, link in passive._links.items()}
            passive.adversary._targets = {active.name: passive._links[active.name]}
        yield


def rebuild_passive(local: LocalFederation, name: str) -> None:
    old = local.passive[name]
    old.close()
    new = PassiveParty(old.config, old._links)
    new.resume()
    local.passive[name] = local.data_parties[name] = new
    local.join(new)


def rebuild_active(local: LocalFederation) -> None:
    old = local.active
    old.close()
    new = ActiveParty(old.config, old._coordinator, old.adversary._targets)
    new.resume()
    local.active = local.data_parties["active"] = new
    local.join(new)


def rebuild_coordinator(local: LocalFederation) -> None:
    old = local.coordinator
    old.close()
    new = local.coordinator = Coordinator(old.config, local.links, lambda stage, done, total: None)
    new.resume()
    local.join(new)


def rebuild_all(local: LocalFederation) -> None:
    for name in local.passive:
        rebuild_passive(local, name)
    rebuild_active(local)
    rebuild_coordinator(local)


REBUILD: dict[str, Callable[[LocalFederation], None]] = {
    "passive": lambda local: rebuild_passive(local, "passive"),
    "active": rebuild_active,
    "coordinator": rebuild_coordinator,
    "everybody": rebuild_all,
}
Outcome = tuple[dict[str, bytes], dict[str, str], dict[str, bytes]]


def outcome(local: LocalFederation, home: Path) -> Outcome:
    finish(local)
    close(local)
    return trained(local), transcripts(home), estimates(home)
