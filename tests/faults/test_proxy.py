"""Bytes that are cut, late, lost or changed on the way to a party: the same criterion, over TLS."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from cells import Undisturbed, check
from proxy import Fault, Proxy, proxied
from stubparty import short_folder
from world import World, dealt, quick

from vflens.config import Limits
from vflens.services.process import link_to


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Undisturbed]:
    """Over TLS: a changed bit must not go unnoticed."""
    home = tmp_path_factory.mktemp("dealt")
    configs = dealt(home, "whole transcript")
    assert all(config.tls for config in configs)
    with quick():
        yield Undisturbed.of(configs, tmp_path_factory.mktemp("undisturbed"))


def ends(undisturbed: Undisturbed, fault: Fault, limits: Limits | None = None) -> tuple[str, int]:
    """How a run ends whose coordinator reaches the passive party through a proxy, and its connections."""
    with ExitStack() as end:
        folder = end.enter_context(short_folder())

        def reach(world: World, through: Path | None, limits: Limits | None = None) -> None:
            config = world.local.coordinator.config
            (peer,) = (p for p in config.peers if p.name == "passive")
            if through:
                peer = peer.model_copy(update={"address": f"unix:{through}"})
            if limits:
                config = config.model_copy(update={"limits": limits})
            world.local.coordinator.links["passive"] = link = link_to(peer, config)
            end.callback(link.close)

        def disturb(world: World) -> None:
            (peer,) = (p for p in world.local.coordinator.config.peers if p.name == "passive")
            to = Path(peer.address.removeprefix("unix:"))
            proxies.append(end.enter_context(proxied(folder / "proxy", to, fault)))
            reach(world, folder / "proxy", limits)

        def mend(world: World) -> None:
            world.restart(*world.local.parties)
            reach(world, None)

        proxies: list[Proxy] = []
        ended = check(undisturbed, "grpc", disturb, mend)
        return ended, proxies[0].connections


@pytest.mark.parametrize("connection", [0, 1])  # of calls, of training steps
@pytest.mark.parametrize("cut", [0, 2_500, 5_000])
def test_a_connection_that_is_cut(undisturbed: Undisturbed, cut: int, connection: int) -> None:
    ended, connections = ends(undisturbed, Fault(cut=cut, connection=connection))
    assert connections > connection
    assert ended in ("same bits", "UnavailableError")  # gRPC itself connects again before the first request


def test_a_connection_that_falls_silent(undisturbed: Undisturbed) -> None:
    """Nothing is closed: a deadline alone ends the waiting."""
    limits = Limits(call_seconds=3, step_seconds=3)
    ended, _ = ends(undisturbed, Fault(silent=3_000, connection=1), limits)
    assert ended == "UnavailableError"


def test_a_slow_connection(undisturbed: Undisturbed) -> None:
    assert ends(undisturbed, Fault(bytes_per_second=100_000))[0] == "same bits"


@pytest.mark.parametrize("connection", [0, 1])
@pytest.mark.parametrize("flipped", [20, 3_600])
def test_a_changed_bit_is_noticed(undisturbed: Undisturbed, flipped: int, connection: int) -> None:
    """TLS refuses the record; without it the bit would pass."""
    ended, _ = ends(undisturbed, Fault(flipped=flipped, connection=connection))
    assert ended in ("same bits", "UnavailableError")
