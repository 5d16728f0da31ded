"""The member that a configuration describes."""

from __future__ import annotations

from collections.abc import Mapping

from vflens.clients.active import ActiveParty
from vflens.clients.passive import PassiveParty
from vflens.config import ActiveConfig, DataConfig, LeaderConfig
from vflens.coordinator.coordinator import Coordinator
from vflens.coordinator.leader import Leader
from vflens.coordinator.progress import Progress
from vflens.protocol.link import Link


def data_party(
    config: DataConfig, links: Mapping[str, Link], *, in_process: bool = False
) -> PassiveParty | ActiveParty:
    """The data party of ``config``, with ``links`` to its peers."""
    if isinstance(config, ActiveConfig):
        return ActiveParty(config, links, in_process=in_process)
    return PassiveParty(config, links, in_process=in_process)


def leader(
    config: LeaderConfig, links: Mapping[str, Link], progress: Progress, *, in_process: bool = False
) -> Leader:
    """The leader of ``config``, with ``links`` to the data parties."""
    return Coordinator(config, links, progress, in_process=in_process)
