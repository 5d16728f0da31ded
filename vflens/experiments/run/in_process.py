"""All parties of a run in one process: quick, deterministic, the same protocol — and no isolation between
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from vflens.clients.active import ActiveParty
from vflens.clients.data_party import DataParty
from vflens.clients.passive import PassiveParty
from vflens.config import ActiveConfig, CoordinatorConfig, PassiveConfig, load_party
from vflens.config.compatibility import build_attacks, build_defenses
from vflens.coordinator.coordinator import Coordinator, Progress
from vflens.errors import VflensError
from vflens.protocol.link import InProcessLink
from vflens.services.folder import write_status


class LocalFederation:
    """A coordinator and its data parties, joined by in-process links."""

    def __init__(self, configs: Mapping[str, Path], progress: Progress) -> None:
        loaded = [load_party(file) for file in configs.values()]
        _check_plugins(loaded)
        self.coordinator_config = next(c for c in loaded if isinstance(c, CoordinatorConfig))
        self._joined: list[InProcessLink] = []
        self.links: dict[str, InProcessLink] = {
            p.name: self._link(p.name, self.coordinator_config) for p in self.coordinator_config.peers
        }
        self.passive = {
            c.party: PassiveParty(c, {p.name: self._link(p.name, c) for p in c.peers})
            for c in loaded
            if isinstance(c, PassiveConfig)
        }
        active = next(c for c in loaded if isinstance(c, ActiveConfig))
        targets = {name: self._link(name, active) for name in self.passive}
        self.active = ActiveParty(active, self._link(self.coordinator_config.party, active), targets)
        self.coordinator = Coordinator(self.coordinator_config, self.links, progress)
        self.data_parties: dict[str, DataParty] = {**self.passive, active.party: self.active}
        for member in self.members():
            self.join(member)
            member.in_process = True

    def _link(self, name: str, caller: PassiveConfig | ActiveConfig | CoordinatorConfig) -> InProcessLink:
        self._joined.append(InProcessLink(name, caller.party, caller.role))
        return self._joined[-1]

    def join(self, member: DataParty | Coordinator) -> None:
        """Let ``member`` answer to its name."""
        for link in self._joined:
            if link.name == member.name:
                link.party = member

    def members(self) -> Iterator[DataParty | Coordinator]:
        """All parties."""
        yield from self.data_parties.values()
        yield self.coordinator

    def run(self) -> None:
        """One whole run; every party's folder says how it ended."""
        with self._statuses():
            self.coordinator.lead()
            self.attack()
            for member in self.members():
                member.flush()
                member.check_defenses()

    def attack(self) -> None:
        """The active party predicts, all data parties attack."""
        self.active.predict_and_attack()
        for party in self.passive.values():
            party.attack()

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
            with ExitStack() as cleanup:  # everybody's, even if one of them cannot write
                for member in self.members():
                    cleanup.callback(write_status, member.folder, state, reason)
                    cleanup.callback(member.close)


def _check_plugins(configs: Iterable[PassiveConfig | ActiveConfig | CoordinatorConfig]) -> None:
    """Refuse any party's plug-ins before one of the parties opens its logs."""
    for config in configs:
        build_defenses(config)
        if not isinstance(config, CoordinatorConfig):
            build_attacks(config)
