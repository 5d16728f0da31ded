"""Kills of real processes: at twenty fail points of every party, at an arrival that a seed chooses."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from criterion import logged
from kills import ROLES, Folder, judge, kill_points, killed
from world import quick

POINTS, SEEDS, AT_A_TIME = 20, 100, 5


class PointKill(NamedTuple):
    """Who is killed, at which fail point, and the seed of the arrival."""

    who: str
    point: str
    seed: int

    def __str__(self) -> str:
        return f"kills:{self.who}:{self.point}:{self.seed}"


class Kills:
    """Kills in federations below ``home``."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._folder = Folder(home / "dealt")
        self.undisturbed = self._folder.undisturbed(home / "undisturbed")
        self._most = {(who, point): most for who, point, most in kill_points(self.undisturbed)}
        self.not_reached = 0

    def cells(self) -> Iterator[PointKill]:
        """All kills, one of each point before the second of any."""
        chosen = [(who, point) for who in ROLES for point in self._points(who)]
        return (PointKill(who, point, seed) for seed, (who, point) in product(range(SEEDS), chosen))

    def _points(self, who: str) -> Sequence[str]:
        points = [point for party, point in self._most if party == who]
        return [points[i * len(points) // POINTS] for i in range(POINTS)]

    def run(self, cells: Sequence[PointKill]) -> list[dict[str, str]]:
        """Kill as ``cells`` say, all at once; cell and error of each failure."""
        found: list[dict[str, str]] = []
        with TemporaryDirectory(dir=self._home) as homes:
            faults = [(cell.who, self._fault(cell)) for cell in cells]
            ended = killed(self._folder, Path(homes), faults)
            for cell, (home, codes) in zip(cells, ended, strict=True):
                try:
                    self._judge(cell, home, codes)
                except AssertionError as error:
                    found.append({"cell": str(cell), "error": str(error)})
        return found

    def _fault(self, cell: PointKill) -> str:
        arrival = np.random.default_rng(cell.seed).integers(self._most[cell.who, cell.point]) + 1
        return f"{cell.point}:{arrival}:kill"

    def _judge(self, cell: PointKill, home: Path, codes: dict[str, int]) -> None:
        """A process may come to a point less often than a party in one process: then nothing is disturbed."""
        if set(codes.values()) == {0}:
            self.not_reached += 1
            assert logged(home) == self.undisturbed.bits.logs
        else:
            judge(home, cell.who, codes, self.undisturbed)


@contextmanager
def prepared() -> Iterator[Kills]:
    """Kills in a folder that is removed afterwards."""
    with TemporaryDirectory(prefix="vfl") as home, quick():
        yield Kills(Path(home))


def soak(seconds: float, number: int = len(ROLES) * POINTS * SEEDS) -> dict[str, Any]:
    """Kill ``number`` times, or as often as ``seconds`` allow.

    Returns:
        Figures, and the failures: each with its cell.
    """
    began, failures, ran = time.monotonic(), list[dict[str, str]](), 0
    with prepared() as kills:
        cells = islice(kills.cells(), number)
        while time.monotonic() - began < seconds and (some := list(islice(cells, AT_A_TIME))):
            failures += kills.run(some)
            ran += len(some)
        return {
            "planned": number,
            "ran": ran,
            "not_reached": kills.not_reached,
            "seconds": round(time.monotonic() - began),
            "failures": failures,
        }


def repeat(who: str, point: str, seed: str) -> None:
    """Run one kill again.

    Raises:
        AssertionError: it fails again.
    """
    with prepared() as kills:
        found = kills.run([PointKill(who, point, int(seed))])
    assert not found, found
