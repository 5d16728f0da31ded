"""VFLens beside an earlier checkout of it, where parties need no TLS: over Unix sockets, and in one process.

``VFLENS_EARLIER`` names the folder of the earlier one, such as ``git worktree add ../earlier COMMIT`` makes.
Both run the same experiment in turn, whole, with the packages of this environment.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from benchmarks.federation import experiment
from benchmarks.ratios import alternate, report
from vflens.experiments.results.record import read_runs
from vflens.storage.metrics import Name

HERE = Path(__file__).parents[1]
KINDS = {"Unix sockets": (), "one process": ("--in-process",)}
FIGURES = {
    "training steps a second": "steps/s",
    "predicted rows a second": "rows/s",
    "processor time of a whole run": "s",
}

#: What both checkouts know: an earlier one refuses settings that came later.
WRITTEN = ("name", "data", "split", "training", "network")


@pytest.mark.benchmark(group="earlier")
@pytest.mark.parametrize("kind", KINDS)
def test_beside_an_earlier_checkout(benchmark: Any, tmp_path: Path, kind: str) -> None:
    earlier = os.environ.get("VFLENS_EARLIER")
    if earlier is None:
        pytest.skip("VFLENS_EARLIER names no earlier checkout")
    setup = experiment(tmp_path, rows=25_600, batch=256, epochs=20).model_dump(mode="json", exclude_none=True)
    file = tmp_path / "experiment.toml"
    file.write_text(tomli_w.dumps({name: setup[name] for name in WRITTEN}), encoding="utf-8")
    runs: dict[str, list[dict[str, float]]] = {"earlier": [], "now": []}
    measures = {
        name: _measure(Path(checkout).resolve(), file, tmp_path / name, KINDS[kind], runs[name])
        for name, checkout in (("earlier", earlier), ("now", str(HERE)))
    }
    benchmark.pedantic(lambda: alternate(measures), rounds=1)
    for figure, unit in FIGURES.items():
        values = {name: [run[figure] for run in found] for name, found in runs.items()}
        report(benchmark, f"{kind}: {figure}", values, "earlier", unit)


def _measure(
    checkout: Path, file: Path, out: Path, flags: tuple[str, ...], found: list[dict[str, float]]
) -> Callable[[], float]:
    """A run of ``file`` by the code in ``checkout``; what it took is added to ``found``."""

    def measure() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [
            sys.executable,
            "-m",
            "vflens.cli.main",
            "run",
            str(file),
            "--out",
            str(out),
            "--json",
            *flags,
        ]
        environment = os.environ | {"PYTHONPATH": str(checkout)}
        done = subprocess.run(command, cwd=checkout, env=environment, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        (run,) = read_runs([Path(json.loads(done.stdout)["folder"])])
        steps, rows, seconds = (
            run.value(name) or 0.0
            for name in (Name.STEPS_PER_SECOND, Name.PREDICT_ROWS, Name.PREDICT_SECONDS)
        )
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        rates = steps, rows / seconds
        found.append(dict(zip(FIGURES, (*rates, spent), strict=True)))
        return spent

    return measure
