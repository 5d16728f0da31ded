"""All parties of a run in one process: quick, deterministic, the same protocol — and no isolation between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from clients.active import ActiveParty
from clients.party import DataParty
from clients.passive import PassiveParty
from coordinator.coordinator import Coordinator, Progress
from services.folder import write_status
from vfl.compatibility import build_attacks, build_defenses
from vfl.config import ActiveConfig, CoordinatorConfig, PassiveConfig, load_party
from vfl.errors import VflensError
from vfl.link import InProcessLink, Link
from vfl.types import Role


class LocalFederation:
    """A coordinator and its data parties, joined by in-process links."""

    def __init__(self, configs: Mapping[str, Path], progress: Progress) -> None:
        loaded = [load_party(file) for file in configs.values()]
        _check_plugins(loaded)
        self.coordinator_config = next(c for c in loaded if isinstance(c, CoordinatorConfig))
        self.links = {
            c.party: InProcessLink(c.party, self.coordinator_config.party, Role.COORDINATOR)
            for c in loaded
            if c.role != Role.COORDINATOR
        }
        self.passive = {c.party: PassiveParty(c) for c in loaded if isinstance(c, PassiveConfig)}
        active = next(c for c in loaded if isinstance(c, ActiveConfig))
        upward = InProcessLink(self.coordinator_config.party, active.party, Role.ACTIVE)
        targets: dict[str, Link] = {}
        for name, party in self.passive.items():
            link = targets[name] = InProcessLink(name, active.party, Role.ACTIVE)
            link.party = party
        self.active = ActiveParty(active, upward, targets)
        self.coordinator = Coordinator(self.coordinator_config, self.links, progress)
        upward.party = self.coordinator
        self.data_parties: dict[str, DataParty] = {**self.passive, active.party: self.active}
        for name, link in self.links.items():
            link.party = self.data_parties[name]
        for member in self.members():
            member.in_process = True

    def members(self) -> Iterator[DataParty | Coordinator]:
        """All parties."""
        yield from self.data_parties.values()
        yield self.coordinator

    def run(self) -> None:
        """One whole run; every party's folder says how it ended."""
        with self._statuses():
            self.coordinator.lead()
            self.active.predict_and_attack()
            for member in self.members():
                member.flush()
                member.check_defenses()

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
        if isinstance(config, ActiveConfig):
            build_attacks(config)
