"""Parties that die in the middle of a run and come back, in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from laboratory import close, estimates, finish, trained, transcripts

from clients.active import ActiveParty
from clients.passive import PassiveParty
from coordinator.coordinator import Coordinator
from experiments.local import LocalFederation
from vfl.acts import Act, Step
from vfl.errors import VflensError
from vfl.link import InProcessLink, Link


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


def rebuild_passive(local: LocalFederation, name: str) -> None:
    old = local.passive[name]
    old.close()
    new = PassiveParty(old.config)
    new.resume()
    local.passive[name] = local.data_parties[name] = new
    local.links[name].party = new
    target = local.active.adversary._targets[name]
    assert isinstance(target, InProcessLink)
    target.party = new


def rebuild_active(local: LocalFederation) -> None:
    old = local.active
    old.close()
    new = ActiveParty(old.config, old._coordinator, old.adversary._targets)
    new.resume()
    local.active = local.data_parties["active"] = new
    local.links["active"].party = new


def rebuild_coordinator(local: LocalFederation) -> None:
    old = local.coordinator
    old.close()
    new = local.coordinator = Coordinator(old.config, local.links, lambda stage, done, total: None)
    new.resume()
    upward = local.active._coordinator
    assert isinstance(upward, InProcessLink)
    upward.party = new


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
