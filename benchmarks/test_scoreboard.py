"""Places of the scoreboard beside an earlier checkout of VFLens, which ``VFLENS_EARLIER`` names.

Both run all attacks that only read in one federation, in turn, and find the same to the bit. What a process
loads once is not measured: each runs the place twice, and the second time counts. Without an earlier checkout
this one runs a few attacks on one small place, beside itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from benchmarks.ratios import REPETITIONS, alternate, report

#: Data, federation and defence, rows, and attacks with commas between them; "" are all.
Place: TypeAlias = tuple[str, str, str, str, str]
HERE = Path(__file__).parents[1]
EARLIER = Path(os.environ["VFLENS_EARLIER"]).resolve() if "VFLENS_EARLIER" in os.environ else None
PLACES = [
    ("bank", "vertical-lr", "no defence"),
    ("digits", "vertical-lr", "marvell"),
    ("diabetes", "vertical-number", "no defence"),
]
SMALL = ("digits", "vertical-lr", "no defence", "150", "half,lmmse,gradient_sign")
CODE = """
import json, sys, tempfile, time
from vflens.experiments.scoreboard import cells
from vflens.experiments.scoreboard.cells import keyed, measured, sends
from vflens.experiments.scoreboard.grid import Place, ScoreboardGrid
data, federation, defense, rows, names = sys.argv[1:]
place = Place(data, federation, defense, 1, int(rows))
with tempfile.TemporaryDirectory() as scratch:
    chosen = names.split(",") if names else ScoreboardGrid().attacks
    attacks = {name: one for name, one in keyed(place, chosen).items() if not sends(name)}
    measured(place, attacks, scratch=scratch)
    getattr(cells, "_remembered", cells).cache_clear()  # or the second time would attack no view
    start = time.process_time()
    rows = measured(place, attacks, scratch=scratch)
    spent = time.process_time() - start
print(json.dumps([spent, [{name: value for name, value in row.items() if name != "key"} for row in rows]]))
"""


@pytest.mark.benchmark(group="scoreboard")
@pytest.mark.parametrize("place", PLACES, ids="/".join)
def test_a_place_beside_an_earlier_checkout(benchmark: Any, place: tuple[str, str, str]) -> None:
    if EARLIER is None:
        pytest.skip("VFLENS_EARLIER names no earlier checkout")
    if place[0] == "bank" and "VFLENS_DATA" not in os.environ:
        pytest.skip("VFLENS_DATA names no folder with the bank's rows")
    earlier, now = _beside(benchmark, EARLIER, (*place, "400", ""), REPETITIONS)
    assert earlier <= now  # which has later attacks too


@pytest.mark.benchmark(group="scoreboard")
def test_a_small_place_finds_the_same_again(benchmark: Any) -> None:
    first, second = _beside(benchmark, HERE, SMALL, 1)
    assert first == second
    assert {json.loads(row)["attack"] for row in first} == {*SMALL[-1].split(",")}


def _beside(benchmark: Any, other: Path, place: Place, repetitions: int) -> tuple[set[str], set[str]]:
    """What the ``other`` checkout and this one find at a place; the times are reported."""
    seconds: dict[str, list[float]] = {"earlier": [], "now": []}
    found: dict[str, set[str]] = {"earlier": set(), "now": set()}
    measures = {
        name: _measure(checkout, place, seconds[name], found[name])
        for name, checkout in (("earlier", other), ("now", HERE))
    }
    benchmark.pedantic(lambda: alternate(measures, repetitions), rounds=1)
    report(benchmark, f"{'/'.join(place[:3])}: processor time", seconds, "earlier", "s")
    return found["earlier"], found["now"]


def _measure(checkout: Path, place: Place, seconds: list[float], found: set[str]) -> Callable[[], float]:
    """A place by the code in ``checkout``; what it took and found is added."""

    def measure() -> float:
        environment = os.environ | {"PYTHONPATH": str(checkout)}
        command = [sys.executable, "-c", CODE, *place]
        done = subprocess.run(command, cwd=checkout, env=environment, check=True, capture_output=True)
        spent, rows = json.loads(done.stdout.splitlines()[-1])
        found.update(json.dumps(row, sort_keys=True) for row in rows)
        seconds.append(spent)
        return float(spent)

    return measure
