"""All parties of a run in one process: quick, deterministic, the same protocol, but no isolation."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeAlias

from vflens.clients.data_party import DataParty
from vflens.config import (
    DataPartyConfig,
    LeaderConfig,
    LedConfig,
    PartyConfig,
    load_party,
)
from vflens.config.compatibility import build_attacks, build_defenses, check_device
from vflens.coordinator.leader import Leader
from vflens.errors import VflensError
from vflens.experiments.run.loading import TRAINED
from vflens.member.stage import Stage
from vflens.member.suspicions import check_defenses
from vflens.protocol.link import InProcessLink, Link
from vflens.protocol.roles import ROLES
from vflens.services.folder import write_status
from vflens.services.members import data_party, leader
from vflens.types import Progress

Joined: TypeAlias = DataParty | Leader


class LocalFederation:
    """A leader and its data parties, joined by in-process links.

    Args:
        configs: each party's configuration, or the file that has it.
        progress: told of each stage.
    """

    def __init__(self, configs: Mapping[str, Path | PartyConfig], progress: Progress) -> None:
        loaded = [c if isinstance(c, PartyConfig) else load_party(c) for c in configs.values()]
        _check_plugins(loaded)
        self.parties: dict[str, Joined] = {}  # by name: all links look here
        for config in loaded:
            self.join(_member(config, self._links(config), progress))

    def _links(self, config: PartyConfig) -> dict[str, Link]:
        return {p.name: InProcessLink(p.name, config.party, config.role, self.parties) for p in config.peers}

    def join(self, member: Joined) -> None:
        """Replace the party of ``member``'s name by ``member``."""
        self.parties[member.name] = member

    @property
    def leader(self) -> Leader:
        """The coordinator or the server."""
        return next(m for m in self.parties.values() if isinstance(m, Leader))

    @property
    def led(self) -> dict[str, DataParty]:
        """All data parties by name; one that predicts first, for others attack its predictions."""
        found = {name: m for name, m in self.parties.items() if isinstance(m, DataParty)}
        return dict(sorted(found.items(), key=lambda named: not ROLES[named[1].role].predicts))

    def members(self) -> Iterator[Joined]:
        """All parties, the leader last."""
        yield from self.led.values()
        yield self.leader

    def run(self) -> None:
        """One whole run; the status in every party's folder records its end."""
        with self._statuses():
            self._lead()
            self.complete()
            for member in self.members():
                member.flush()
                check_defenses(member)
            self.leader.check_model()
            self.leader.stop()

    def _lead(self) -> None:
        """Prepare, train and open predictions; data parties take up what a run before this one trained."""
        kept, leader = TRAINED.get(), self.leader
        if kept:
            leader.prepare()
            for name, party in self.led.items():
                party.load(kept[name])
            leader.advance(Stage.DISCLOSED)  # training is over
        leader.lead()
        if kept == {}:
            for party in self.led.values():
                party.settle()
            kept.update({name: party.state() for name, party in self.led.items()})  # all parties, or none

    def complete(self) -> None:
        """What all data parties do once training is over."""
        for name in self.led:  # looked up anew: a party can be replaced meanwhile
            self.led[name].complete()

    @contextmanager
    def _statuses(self) -> Iterator[None]:
        state, reason = "interrupted", "stopped by a signal"
        try:
            yield
            state, reason = "finished", ""
        except VflensError as error:
            state, reason = "failed", str(error)
            raise
        except Exception as error:
            state, reason = "failed", f"{type(error).__name__}: {error}"
            raise
        finally:
            with ExitStack() as cleanup:  # every party's, even if one cannot write
                for member in self.members():
                    cleanup.callback(write_status, member.folder, state, reason)
                    cleanup.callback(member.close)


def _member(config: PartyConfig, links: Mapping[str, Link], progress: Progress) -> Joined:
    if isinstance(config, LeaderConfig):
        return leader(config, links, progress, in_process=True)
    assert isinstance(config, LedConfig)
    return data_party(config, links, in_process=True)


def _check_plugins(configs: Iterable[PartyConfig]) -> None:
    """Refuse any party's plug-ins or device before a party opens its logs."""
    for config in configs:
        build_defenses(config)
        build_attacks(config)
        if isinstance(config, DataPartyConfig):
            check_device(config)
