"""Places of the scoreboard beside an earlier checkout of VFLens, which ``VFLENS_EARLIER`` names.

Both run all attacks that only read in one federation, in turn, and find the same to the bit. What a process
loads once is not measured: each runs the place twice, and the second time counts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.ratios import alternate, report

HERE = Path(__file__).parents[1]
PLACES = [
    ("bank", "vertical-lr", "no defence"),
    ("digits", "vertical-lr", "marvell"),
    ("diabetes", "vertical-number", "no defence"),
]
CODE = """
import json, sys, tempfile, time
from vflens.experiments.scoreboard.cells import keyed, measured, sends
from vflens.experiments.scoreboard.grid import Place, ScoreboardGrid
place = Place(*sys.argv[1:], 1)
with tempfile.TemporaryDirectory() as scratch:
    attacks = {name: one for name, one in keyed(place, ScoreboardGrid().attacks).items() if not sends(name)}
    measured(place, attacks, scratch=scratch)
    start = time.process_time()
    rows = measured(place, attacks, scratch=scratch)
    spent = time.process_time() - start
print(json.dumps([spent, [{name: value for name, value in row.items() if name != "key"} for row in rows]]))
"""


@pytest.mark.benchmark(group="scoreboard")
@pytest.mark.parametrize("place", PLACES, ids="/".join)
def test_a_place_beside_an_earlier_checkout(benchmark: Any, place: tuple[str, str, str]) -> None:
    earlier = os.environ.get("VFLENS_EARLIER")
    if earlier is None:
        pytest.skip("VFLENS_EARLIER names no earlier checkout")
    seconds: dict[str, list[float]] = {"earlier": [], "now": []}
    found: dict[str, set[str]] = {"earlier": set(), "now": set()}
    measures = {
        name: _measure(Path(checkout).resolve(), place, seconds[name], found[name])
        for name, checkout in (("earlier", earlier), ("now", str(HERE)))
    }
    benchmark.pedantic(lambda: alternate(measures), rounds=1)
    report(benchmark, f"{'/'.join(place)}: processor time", seconds, "earlier", "s")
    assert found["earlier"] <= found["now"]  # which has later attacks too


def _measure(
    checkout: Path, place: tuple[str, str, str], seconds: list[float], found: set[str]
) -> Callable[[], float]:
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
