"""Cells: one fault in one tiny run, and what the run must end with."""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from accidents import LINK_FAULTS, Killed
from criterion import Bits, assert_numbered, assert_same, assert_untouched, logged
from world import World, dealt, quick

from vflens.config import PartyConfig
from vflens.errors import VflensError
from vflens.failpoints import WRITES
from vflens.protocol.acts import Act


def _kill() -> None:
    raise Killed


def _full() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


POINT_FAULTS: Mapping[str, Callable[[], None]] = {"kill": _kill, "full": _full}


@dataclass(frozen=True)
class Cell:
    """``fault`` happens to ``who``, at the ``number``-th arrival at ``place``: a fail point, or a request as
    (callee, act).
    """

    who: str
    place: str | tuple[str, type[Act[Any]]]
    fault: str
    number: int
    link: str

    def inject(self, world: World) -> None:
        """Prepare the fault."""
        if isinstance(self.place, str):
            world.fail(self.who, self.place, self.number, POINT_FAULTS[self.fault])
        else:
            world.disturb(self.who, *self.place, self.number, LINK_FAULTS[self.fault])

    def mend(self, world: World) -> None:
        """Start all parties again, or only the one with the fault and the leader."""
        everyone, few = list(world.local.parties), (self.who, world.local.leader.name)
        world.restart(*(everyone if self.number % 2 else dict.fromkeys(few)))


@dataclass(frozen=True)
class Undisturbed:
    """A run without a fault: its bits, and where faults are possible."""

    configs: list[PartyConfig]
    bits: Bits
    places: list[tuple[str, Any, str, int]]  # who, place, fault, most arrivals

    @classmethod
    def of(cls, configs: list[PartyConfig], home: Path) -> Undisturbed:
        """Run ``configs`` once."""
        with closing(World(configs, home, "plain")) as world:
            ends = world.lead()
            return cls(configs, ends, list(_places(world)))

    def cells(self, link: str, seed: int) -> list[Cell]:
        """Every place and fault, at an arrival that ``seed`` chooses."""
        rng = np.random.default_rng(seed)
        return [
            Cell(who, place, fault, int(rng.integers(most)) + 1, link=link)
            for who, place, fault, most in self.places
        ]


@contextmanager
def undisturbed_kinds(folders: pytest.TempPathFactory) -> Iterator[Callable[[str], Undisturbed]]:
    """The run without a fault of a kind of federation, run at its first use; nothing syncs its disks."""
    found: dict[str, Undisturbed] = {}

    def of(kind: str) -> Undisturbed:
        if kind not in found:
            homes = (folders.mktemp(name) for name in ("dealt", "undisturbed"))
            found[kind] = Undisturbed.of(dealt(next(homes), kind), next(homes))
        return found[kind]

    with quick():
        yield of


def _places(world: World) -> Iterator[tuple[str, Any, str, int]]:
    for (who, point), most in sorted(world.hits.items()):
        if who != "dealer":
            yield who, point, "kill", most
            if point in WRITES:
                yield who, point, "full", most
    asked = Counter((caller, callee, type(act)) for caller, callee, act in world.asked)
    for (caller, callee, act), most in sorted(asked.items(), key=str):
        for fault in LINK_FAULTS:
            yield caller, (callee, act), fault, most


def check(
    undisturbed: Undisturbed,
    link: str,
    disturb: Callable[[World], object],
    mend: Callable[[World], object] = lambda world: world.restart(*world.local.parties),
) -> str:
    """The criterion: the disturbed run ends with the undisturbed run's bits, or with a numbered error and
    untouched logs. Once it is mended it ends with the same bits. Nothing is drawn twice.

    Returns:
        How the disturbed run ended: "same bits", "killed", or the name of the error.
    """
    with TemporaryDirectory() as home, closing(World(undisturbed.configs, Path(home), link)) as world:
        disturb(world)
        ended, found = _ended(world)
        if found is None:
            assert_untouched(logged(Path(home)), undisturbed.bits.logs)
            mend(world)
            found = world.lead()
        assert_same(found, undisturbed.bits)
        return ended


def _ended(world: World) -> tuple[str, Bits | None]:
    try:
        return "same bits", world.lead()
    except Killed:
        return "killed", None
    except VflensError as error:
        assert_numbered(error)
        return type(error).__name__, None
