"""The member that a configuration describes."""

from __future__ import annotations

from collections.abc import Mapping

from vflens.clients.active import ActiveParty
from vflens.clients.data_party import DataParty
from vflens.clients.horizontal.client import Client
from vflens.clients.passive import PassiveParty
from vflens.config import ActiveConfig, ClientConfig, DataConfig, LeaderConfig, ServerConfig
from vflens.coordinator.coordinator import Coordinator
from vflens.coordinator.leader import Leader
from vflens.coordinator.progress import Progress
from vflens.coordinator.server import Server
from vflens.coordinator.split_server import SplitServer
from vflens.protocol.link import Link


def data_party(config: DataConfig, links: Mapping[str, Link], *, in_process: bool = False) -> DataParty:
    """The data party of ``config``, with ``links`` to its peers."""
    if isinstance(config, ClientConfig):
        return Client(config, links, in_process=in_process)
    if isinstance(config, ActiveConfig):
        return ActiveParty(config, links, in_process=in_process)
    return PassiveParty(config, links, in_process=in_process)


def leader(
    config: LeaderConfig, links: Mapping[str, Link], progress: Progress, *, in_process: bool = False
) -> Leader:
    """The leader of ``config``, with ``links`` to the data parties."""
    if isinstance(config, ServerConfig) and config.horizontal.is_split:
        return SplitServer(config, links, progress, in_process=in_process)
    if isinstance(config, ServerConfig):
        return Server(config, links, progress, in_process=in_process)
    return Coordinator(config, links, progress, in_process=in_process)
