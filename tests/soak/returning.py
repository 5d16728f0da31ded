"""Kills in each phase; the party is started again while the others wait. A seed chooses the arrival."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from cells import Undisturbed
from kills import ROLES, kill_points
from phases import PHASES, RUNS, dealt, judge, reborn, undisturbed_run
from world import quick

SEEDS, AT_A_TIME = 100, 5


class Return(NamedTuple):
    """Who is killed in which phase, at which fail point, and the seed of the arrival."""

    phase: str
    who: str
    point: str
    seed: int

    def __str__(self) -> str:
        return f"returning:{self.phase}:{self.who}:{self.point}:{self.seed}"


CELLS = [
    Return(phase, who, fault.split(":")[0], seed)
    for seed in range(SEEDS)
    for phase, (_, faults) in PHASES.items()
    for who, fault in faults
]


class Returns:
    """Kills in federations below ``home``."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._undisturbed = {kind: undisturbed_run(home / kind, kind) for kind in RUNS}

    def run(self, cells: Sequence[Return]) -> list[dict[str, str]]:
        """Kill as ``cells`` say, all at once; cell and error of each failure."""
        found: list[dict[str, str]] = []
        with TemporaryDirectory(dir=self._home) as folder:
            homes = [dealt(Path(folder) / str(i), PHASES[cell.phase][0]) for i, cell in enumerate(cells)]
            faults = [
                (home, c.who, f"{c.point}:{self._arrival(c)}") for home, c in zip(homes, cells, strict=True)
            ]
            with reborn(faults) as federations:
                codes = iter(federations.codes())
            for home, cell in zip(homes, cells, strict=True):
                ended = {role: next(codes) for role in ROLES}
                killed = cell.who if len(ended[cell.who]) > 1 else ""  # a process may come there less often
                try:
                    judge(home, ended, killed, self._of(cell))
                except AssertionError as error:
                    found.append({"cell": str(cell), "error": str(error)})
        return found

    def _of(self, cell: Return) -> Undisturbed:
        return self._undisturbed[PHASES[cell.phase][0]]

    def _arrival(self, cell: Return) -> int:
        most = {(who, point): most for who, point, most in kill_points(self._of(cell))}
        return int(np.random.default_rng(cell.seed).integers(most.get((cell.who, cell.point), 1))) + 1


@contextmanager
def prepared() -> Iterator[Returns]:
    """Kills in a folder that is removed afterwards."""
    with TemporaryDirectory(prefix="vfl") as home, quick():
        yield Returns(Path(home))


def soak(seconds: float, number: int = len(CELLS)) -> dict[str, Any]:
    """Kill ``number`` times, or as often as ``seconds`` allow.

    Returns:
        Figures, and the failures: each with its cell.
    """
    failures, ran = list[dict[str, str]](), 0
    with prepared() as returns:
        began, cells = time.monotonic(), iter(CELLS[:number])
        while time.monotonic() - began < seconds and (some := list(islice(cells, AT_A_TIME))):
            failures += returns.run(some)
            ran += len(some)
    taken = round(time.monotonic() - began)
    return {"planned": number, "ran": ran, "seconds": taken, "failures": failures}


def repeat(phase: str, who: str, point: str, seed: str) -> None:
    """Run one kill again.

    Raises:
        AssertionError: it fails again.
    """
    with prepared() as returns:
        found = returns.run([Return(phase, who, point, int(seed))])
    assert not found, found
