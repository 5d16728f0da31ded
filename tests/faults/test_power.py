"""Machines that lose power: with ``limits.durable = "machine"`` nothing is lost that another party saw."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from accidents import Killed, acting
from cells import Undisturbed, undisturbed_kinds
from criterion import assert_same
from power import Disk, Powered, disk_of
from thinned import thinned
from world import KINDS, World, dealt, quick

from vflens import failpoints
from vflens.config import PartyConfig
from vflens.errors import VflensError

CUTS = 4  # losses of power of each kind of federation


def durable(configs: list[PartyConfig], durable: str = "machine") -> list[PartyConfig]:
    limits = [c.limits.model_copy(update={"durable": durable}) for c in configs]
    return [c.model_copy(update={"limits": own}) for c, own in zip(configs, limits, strict=True)]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Undisturbed]]:
    """The run without a fault, by kind; its disks are not synced."""
    with undisturbed_kinds(tmp_path_factory) as of:
        yield of


@pytest.mark.parametrize("number", thinned(((number,) for number in range(CUTS)), CUTS))
@pytest.mark.parametrize("kind", KINDS)
def test_a_loss_of_power_changes_no_bit(
    tmp_path: Path, undisturbed: Callable[[str], Undisturbed], kind: str, number: int
) -> None:
    """It comes anywhere; the party goes on with what its disk has, the others with what they know."""
    places = [p for p in undisturbed(kind).places if p[2] == "kill"]
    who, point, _, most = places[(2 * number + 1) * len(places) // (2 * CUTS)]
    arrival = int(np.random.default_rng(number).integers(most)) + 1
    configs = durable(undisturbed(kind).configs)
    with disk_of(tmp_path) as disk, closing(Powered(configs, tmp_path, disk)) as world:
        world.lose_power(who, point, arrival)
        with pytest.raises((Killed, VflensError)):
            world.lead()
        world.restart(*world.local.parties)
        assert_same(world.lead(), undisturbed(kind).bits)


@pytest.mark.parametrize("kind", KINDS)
def test_all_is_on_the_disk_when_a_reply_leaves(tmp_path: Path, kind: str) -> None:
    with disk_of(tmp_path / "run") as disk, quick():
        left = unsynced(tmp_path, kind, disk, "machine")
        assert len(left) > 10
        assert [files for files in left if files] == []


def test_without_it_files_are_left_to_the_system(tmp_path: Path) -> None:
    with disk_of(tmp_path / "run") as disk, quick():
        left = unsynced(tmp_path, "whole transcript", disk, "process")
    assert ["state.json" in of_reply for of_reply in left[-5:]] == 5 * [True]


def unsynced(home: Path, kind: str, disk: Disk, setting: str) -> list[list[str]]:
    """The files of the answering party that were not synced, at each reply of a whole run."""
    found: list[list[str]] = []

    def look(point: str) -> None:
        if point.endswith(".answered"):
            found.append(disk.unsynced(home / "run" / acting.get()))

    configs = durable(dealt(home / "dealt", kind), setting)
    with closing(World(configs, home / "run", "plain")) as world:
        failpoints.armed.append(look)
        try:
            world.lead()
        finally:
            failpoints.armed.remove(look)
    return found
