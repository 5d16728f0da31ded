"""Tiny federations that are disturbed: dealt once, started again and again in folders of their own."""

from __future__ import annotations

import importlib.metadata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import horizontal
from accidents import Faulty, Served, acting, acts_as, over_grpc, started
from criterion import Bits, Draws, bits, carried
from laboratory import NOISY, deal, experiment
from oneprocess import LocalFederation
from stubparty import short_folder

from vflens import failpoints
from vflens.config import PartyConfig, load_party
from vflens.errors import StorageError
from vflens.experiments.run.any_experiment import AnyPartiesExperiment
from vflens.member.suspicions import check_defenses
from vflens.protocol.acts import Act
from vflens.protocol.link import InProcessLink, Party
from vflens.services.folder import begin
from vflens.types import Role

NOISE = {"name": "dp_gaussian", "at": "passive", "clip": 1.0, "level": 1.0}
SETTINGS: dict[str, Any] = {
    "data": {"name": "synthetic", "rows": 24, "features": 4, "classes": 2, "informative": 2},
    "training": {"epochs": 2, "batch_size": 7, "learning_rate": 0.1},
    "limits": {"checkpoint_steps": 2},
    "attacks": [{"name": "half"}],
    "defenses": [*NOISY, NOISE],
}
PROTECTED = {**SETTINGS["training"], "optimizer": "sgd", "protection": "shares"}
NUMBER: dict[str, Any] = {
    "data": {"name": "diabetes", "sample": 24},
    "model": {"family": "linear_regression"},
    "training": {**PROTECTED, "learning_rate": 0.04},
    "defenses": [],  # those above act on classes
}
NETWORK = {"architecture": "mlp", "width": 2, "hidden": [], "top": [3], "precision": "float64"}
AVERAGES: dict[str, Any] = {
    "data": SETTINGS["data"],
    "parties": {"clients": 2},
    "training": {"batch_size": 7, "learning_rate": 0.1},
    "horizontal": {"rounds": 3},
    "limits": SETTINGS["limits"],
}
NOISY_CLIENT = {"name": "dp_gaussian", "at": "client-1", "clip": 1.0, "level": 1.0}
#: Federations that log and lead in different ways.
KINDS: dict[str, dict[str, Any]] = {
    "whole transcript": SETTINGS,
    "sampled transcript": SETTINGS | {"transcript": {"every": 2}, "align": {"mode": "psi"}},
    "active aggregates": SETTINGS
    | {"aggregator": "active", "model": NETWORK, "disclose": [], "defenses": [NOISE]},
    "protected training": SETTINGS
    | {"training": PROTECTED, "defenses": NOISY, "limits": {"checkpoint_steps": 3}},  # odd: within a step
    "number on shares": SETTINGS | NUMBER | {"limits": {"checkpoint_steps": 3}},
    "server averages": AVERAGES | {"defenses": [NOISY_CLIENT]},
    "masked updates": AVERAGES
    | {"parties": {"clients": 3}, "horizontal": {"rounds": 3, "secure_aggregation": True}},
    "drawn clients": AVERAGES
    | {"parties": {"clients": 3}, "horizontal": {"rounds": 4, "participants": 2}, "defenses": [NOISY_CLIENT]},
}


def dealt(home: Path, kind: str) -> list[PartyConfig]:
    """Every party's configuration, its table below ``home``."""
    return [load_party(file) for file in deal(experiment_of(home, KINDS[kind]), home).values()]


def experiment_of(out: Path, settings: dict[str, Any]) -> AnyPartiesExperiment:
    """The experiment of one scenario with ``settings``, of the setting that they belong to."""
    made = horizontal.experiment if "horizontal" in settings else experiment
    return made(out, **settings)


@contextmanager
def quick() -> Iterator[None]:
    """What a process looks up once is looked up once in all of this process's runs."""
    with (
        patch("vflens.registry.entry_points", cache(importlib.metadata.entry_points)),
        patch("vflens.member.member.version", cache(importlib.metadata.version)),
    ):
        yield


class World:
    """The parties of ``configs`` below ``home``, over ``link`` "plain" or "grpc"; with ``resume`` they go on
    from what their folders hold.
    """

    def __init__(self, configs: list[PartyConfig], home: Path, link: str, *, resume: bool = False) -> None:
        self.home, self.draws = home, Draws()
        self.hits: Counter[tuple[str, str]] = Counter()  # (party, fail point)
        self.asked: list[tuple[str, str, Act[Any]]] = []  # (caller, callee, act)
        self._end = ExitStack()
        sockets = self._end.enter_context(short_folder())
        addresses = {c.party: f"unix:{sockets}/{c.party}" for c in configs}
        self._configs = [_at(c, home / c.party, addresses) for c in configs]
        self.local = LocalFederation({}, lambda stage, done, total: None)
        self._start(move_aside=not resume)
        if resume:
            self.restart(*self.local.parties)
        if link == "grpc":
            self._end.enter_context(over_grpc(self.local, self._observed))
        self._end.enter_context(_armed(self._hit))

    def _start(self, *, move_aside: bool = True) -> None:
        """Begin as `vflens serve` does: an earlier run's files are moved aside."""
        for config in self._configs:
            if move_aside:
                begin(config)
            old = self.local.parties.get(config.party)
            self.local.join(started(config, old.links if old else {}))
        served = {name: self._observed(self.local.parties, name) for name in self.local.parties}
        for member in self.local.members():
            for peer in member.config.peers:
                link = InProcessLink(peer.name, member.name, member.role, served)
                member.links.setdefault(peer.name, link)

    def _observed(self, parties: Mapping[str, Party], name: str) -> Party:
        return _Observed(self, parties, name)

    def _hit(self, point: str) -> None:
        self.hits[acting.get("dealer"), point] += 1

    def fail(self, who: str, point: str, number: int, act: Callable[[], object]) -> None:
        """Let ``act`` happen when ``who`` comes to ``point`` for the ``number``-th time."""
        fault = failpoints.at(f"{who} {point}", number, act)
        self._end.enter_context(_armed(lambda name: fault(f"{acting.get('dealer')} {name}")))

    def disturb(self, caller: str, callee: str, kind: type[Act[Any]], number: int, fault: Any) -> None:
        """Let ``fault`` happen to the ``number``-th such request."""
        links = self.local.parties[caller].links
        links[callee] = Faulty(links[callee], kind, number, fault)

    def lead(self) -> Bits:
        """Go on from where the run is to its end; what it ends with.

        Raises:
            Killed: the party that leads was killed; VflensError: another was, or a fault was noticed.
        """
        with acts_as(self.local.leader.name):
            self.local.leader.lead()
        for name in self.local.led:  # looked up anew: a party can be replaced meanwhile
            with acts_as(name):
                self.local.led[name].complete()
        for member in self.local.members():
            with acts_as(member.name):
                member.flush()
                check_defenses(member)
                member.close()
        self.draws.note_logs(self.home)
        return bits(self.local, self.home)

    def restart(self, *names: str) -> None:
        """Start these parties again, where they died; if one has no prepared run, all begin a new run."""
        self.draws.note_logs(self.home)
        try:
            for name in names:
                self._resume(name)
        except StorageError:
            assert not (self.local.leader.folder / "state.json").exists(), "the run was prepared"
            for member in self.local.members():
                bury(member)
            self._start()

    def _resume(self, name: str) -> None:
        old = self.local.parties[name]
        bury(old)
        new = started(old.config, old.links)
        self.local.join(new)
        with acts_as(name):
            new.resume()

    def close(self) -> None:
        """Close whatever is open."""
        for member in self.local.members():
            bury(member)
        self._end.close()


class _Observed(Served):
    """Notes what it is asked for and every payload that passes."""

    def __init__(self, world: World, parties: Mapping[str, Party], name: str) -> None:
        super().__init__(parties, name)
        self._world = world

    def perform(self, act: Act[Any], caller: str, caller_role: Role) -> Any:
        self._world.asked.append((caller, self.name, act))
        self._world.draws.note(carried(act))
        reply = super().perform(act, caller, caller_role)
        self._world.draws.note(carried(reply))
        return reply


def _at(config: PartyConfig, home: Path, addresses: Mapping[str, str]) -> PartyConfig:
    peers = tuple(p.model_copy(update={"address": addresses[p.name]}) for p in config.peers)
    return config.model_copy(update={"out": home, "address": addresses[config.party], "peers": peers})


@contextmanager
def _armed(fault: Callable[[str], None]) -> Iterator[None]:
    failpoints.armed.append(fault)
    try:
        yield
    finally:
        failpoints.armed.remove(fault)


def bury(member: Any) -> None:
    """Close the files of a party that died, without any of its last work."""
    for log in (member.transcript, member.recovery, member.gate):
        log.close()
