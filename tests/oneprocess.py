"""A federation in this process, whose parties tests reach by their roles."""

from __future__ import annotations

from vflens.clients.vertical.active import ActiveParty
from vflens.clients.vertical.passive import PassiveParty
from vflens.coordinator.vertical.coordinator import Coordinator
from vflens.experiments.run import in_process


class LocalFederation(in_process.LocalFederation):
    """With the parties of a vertical run."""

    @property
    def coordinator(self) -> Coordinator:
        """The coordinator."""
        return next(m for m in self.parties.values() if isinstance(m, Coordinator))

    @property
    def active(self) -> ActiveParty:
        """The active party."""
        return next(m for m in self.parties.values() if isinstance(m, ActiveParty))

    @property
    def passive(self) -> dict[str, PassiveParty]:
        """The passive parties, by name."""
        return {name: m for name, m in self.parties.items() if isinstance(m, PassiveParty)}

    @property
    def data_parties(self) -> dict[str, PassiveParty | ActiveParty]:
        """The data parties of a vertical federation, by name."""
        return {**self.passive, self.active.name: self.active}
