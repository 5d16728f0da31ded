"""Thirty kills of real processes: the others end with a numbered error, no log is touched, and the run goes
on from the folders to the undisturbed run's bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from cells import Undisturbed
from kills import Folder, judge, kill_points, killed
from world import quick

KILLS, AT_A_TIME = 30, 5


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder(tmp_path_factory.mktemp("dealt"))


@pytest.fixture(scope="module")
def undisturbed(folder: Folder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Undisturbed]:
    with quick():
        yield folder.undisturbed(tmp_path_factory.mktemp("undisturbed") / "run")


def faults(undisturbed: Undisturbed) -> list[tuple[str, str]]:
    """Party and fault of each kill, spread over all fail points."""
    rng, points = np.random.default_rng(7), kill_points(undisturbed)
    chosen = points[:: len(points) // KILLS][:KILLS]
    return [(who, f"{place}:{rng.integers(most) + 1}:kill") for who, place, most in chosen]


@pytest.mark.parametrize("first", range(0, KILLS, AT_A_TIME))
def test_killed(tmp_path: Path, folder: Folder, undisturbed: Undisturbed, first: int) -> None:
    chosen = faults(undisturbed)[first:][:AT_A_TIME]
    assert len(chosen) == AT_A_TIME
    ended = killed(folder, tmp_path, chosen)
    for (who, fault), (home, codes) in zip(chosen, ended, strict=True):
        try:
            judge(home, who, codes, undisturbed)
        except AssertionError as error:
            error.add_note(f"{who} {fault}")
            raise
