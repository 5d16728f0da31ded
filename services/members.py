"""The member that a configuration describes."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import overload

from vflens.clients.data_party import DataParty
from vflens.clients.horizontal.client import Client
from vflens.clients.operator_answers import OperatorAnswers
from vflens.clients.vertical.active import ActiveParty
from vflens.clients.vertical.passive import PassiveParty
from vflens.config import (
    ActiveConfig,
    ClientConfig,
    CoordinatorConfig,
    LeaderConfig,
    LedConfig,
    PassiveConfig,
)
from vflens.coordinator.horizontal.split_server import server
from vflens.coordinator.leader import Leader
from vflens.coordinator.vertical.coordinator import Coordinator
from vflens.coordinator.vertical.dealer import DealingCoordinator
from vflens.protocol.link import Link
from vflens.protocol.vertical.access import ON_SHARES
from vflens.services.folder import check_kept
from vflens.types import Progress, Role


def coordinator(
    config: CoordinatorConfig, links: Mapping[str, Link], progress: Progress, *, in_process: bool
) -> Coordinator:
    """The coordinator of ``config``, as its run trains."""
    made = DealingCoordinator if config.way is ON_SHARES else Coordinator
    return made(config, links, progress, in_process=in_process)


#: Role → what makes its party.
DATA_PARTIES: Mapping[Role, Callable[..., DataParty]] = {
    Role.PASSIVE: PassiveParty,
    Role.ACTIVE: ActiveParty,
    Role.CLIENT: Client,
}
LEADERS: Mapping[Role, Callable[..., Leader]] = {Role.COORDINATOR: coordinator, Role.SERVER: server}


def data_party(config: LedConfig, links: Mapping[str, Link], *, in_process: bool = False) -> DataParty:
    """The data party of ``config``, with ``links`` to its peers."""
    return DATA_PARTIES[config.role](config, links, in_process=in_process)


@overload
@contextmanager
def resumed(config: PassiveConfig, *, in_process: bool) -> Iterator[PassiveParty]: ...
@overload
@contextmanager
def resumed(config: ActiveConfig, *, in_process: bool) -> Iterator[ActiveParty]: ...
@overload
@contextmanager
def resumed(config: ClientConfig, *, in_process: bool) -> Iterator[Client]: ...
@overload
@contextmanager
def resumed(config: LedConfig, *, in_process: bool) -> Iterator[DataParty]: ...
@contextmanager
def resumed(config: LedConfig, *, in_process: bool) -> Iterator[DataParty]:
    """The data party of ``config`` as its run left it, without peers; closed after the block.

    ``in_process`` is as its run was: closing it writes this again.

    Raises:
        StorageError: a log lacks records that it had.
    """
    check_kept(config)
    party = data_party(config, {}, in_process=in_process)
    try:
        party.resume()
        yield party
    finally:
        party.close()


@contextmanager
def operator_of(config: ActiveConfig, *, in_process: bool) -> Iterator[OperatorAnswers]:
    """What the operator has of the active party of ``config``, as its run left it; see :func:`resumed`."""
    with resumed(config, in_process=in_process) as party:
        yield OperatorAnswers(party)


def leader(
    config: LeaderConfig, links: Mapping[str, Link], progress: Progress, *, in_process: bool = False
) -> Leader:
    """The leader of ``config``, with ``links`` to the data parties."""
    return LEADERS[config.role](config, links, progress, in_process=in_process)
