"""Peak memory of a party's process against its data and four messages, the largest of which carries the
digests of its ids.

Peak memory of the estimators: a process each, 10⁶ rows of 36 columns and five equations, held to 1 GiB.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.federation import experiment
from benchmarks.peaks import watching
from vflens.experiments.run.run import run
from vflens.protocol.vertical.alignment import DIGEST_BYTES

SMALL, LARGE, FEATURES = 1_000, 400_000, 40
ID_BYTES = len("synthetic-000000")
MIB = 2**20


@pytest.mark.benchmark(group="memory")
def test_peak_memory_of_the_parties(benchmark: Any, tmp_path: Path) -> None:
    peaks = benchmark.pedantic(lambda: [_peaks(tmp_path / str(n), n) for n in (SMALL, LARGE)], rounds=1)
    rows = LARGE - SMALL
    features, ids, digests = (rows * n / MIB for n in (FEATURES / 2 * 8, ID_BYTES, DIGEST_BYTES))
    data = {"passive": features + ids, "active": features + ids + rows * 8 / MIB, "coordinator": 0.0}
    print(f"\npeak memory with {LARGE:,} rows of {FEATURES // 2} columns a data party, beside {SMALL:,} rows")
    for party, peak in sorted(peaks[1].items()):
        more = peak - peaks[0][party]
        print(
            f"  {party:<12} {peak:4.0f} MiB, {more:4.0f} more; data {data[party]:3.0f} and four messages "
            f"{4 * digests:3.0f}: "
            f"{more / (data[party] + 4 * digests):.2f} of that"
        )
    benchmark.extra_info.update(
        {"small": peaks[0], "large": peaks[1], "data_mib": data, "message_mib": digests}
    )


def _peaks(out: Path, rows: int) -> dict[str, float]:
    """Party → the most MiB that its process ever held."""
    with watching() as peaks:
        run(experiment(out, rows=rows, batch=1024, epochs=1, features=FEATURES))
    return peaks


#: One estimator on as many rows as fill 36 columns; prints the most MiB that the process ever held.
ONE = """
import sys
import numpy as np
from vflens import attacks
from vflens.types import Moments
name, rng = sys.argv[1], np.random.default_rng(0)
A = np.diff(rng.normal(size=(6, 36)), axis=0)
b = np.concatenate([rng.random((10_000, 36)) @ A.T for _ in range(100)])
params = {"steps": 3} if name == "gia" else {}  # each step takes the same memory
attacks.estimate(name, A, b, rng=rng, moments=Moments(np.full(36, 0.5), np.eye(36) / 12), **params)
# Not getrusage: its peak begins with that of the process which started this one.
print(next(int(line.split()[1]) for line in open('/proc/self/status') if line.startswith('VmHWM')) / 1024)
"""


@pytest.mark.benchmark(group="memory")
@pytest.mark.parametrize("name", ["half_star", "lmmse", "cls", "rcc1", "rcc2", "gia", "chebyshev"])
def test_peak_memory_of_a_million_estimates(benchmark: Any, name: str) -> None:
    def measure() -> float:
        done = subprocess.run([sys.executable, "-c", ONE, name], capture_output=True, text=True, check=True)
        return float(done.stdout)

    peak = benchmark.pedantic(measure, rounds=1)
    print(f"\n{name}: {peak:.0f} MiB for 10⁶ rows of 36 columns")
    benchmark.extra_info["peak_mib"] = peak
    assert peak < 1024
