"""Releasing a table: streaming against pandas' read and write, memory, and the correlated release.

Seconds are of the processor: one core's work, under any load.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv

from benchmarks.ratios import alternate, report
from vflens.experiments.release.options import ReleaseOptions
from vflens.experiments.release.run import release

ROWS, MANY = 100_000, 10_000_000

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five numbers and a label a row, as CSV."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(ROWS, 5)) * 10 ** np.arange(5), columns=list("abcde"))
    frame["y"] = rng.integers(0, 2, ROWS)
    path = tmp_path_factory.mktemp("release") / "table.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.mark.benchmark(group="release")
def test_rows_per_second_against_pandas(benchmark: Any, table: Path) -> None:
    out = table.with_name("out.csv")

    def pandas() -> float:
        began = process_time()
        pd.read_csv(table).to_csv(out, index=False)
        return ROWS / (process_time() - began)

    def ours(mechanism: str, **noise: Any) -> float:
        options = ReleaseOptions(
            table=table, out=out, mechanism=mechanism, label="y", lambda_=1.0, force=True, **noise
        )
        began = process_time()
        release(options, lambda *_: None)
        return ROWS / (process_time() - began)

    candidates = {
        "pandas": pandas,
        "gaussian": lambda: ours("gaussian"),
        "laplace": lambda: ours("laplace"),
        "bounded": lambda: ours("bounded", lower="-1", upper="1"),
    }
    figures = benchmark.pedantic(lambda: alternate(candidates, 3), rounds=1)
    ratios = report(benchmark, f"{ROWS:,} rows × 5 columns, CSV to CSV", figures, "pandas", "rows/CPU s")
    assert min(ratios.values()) >= 0.5


@pytest.mark.benchmark(group="release")
def test_ten_million_rows_in_bounded_memory(benchmark: Any, tmp_path: Path) -> None:
    table = tmp_path / "many.csv"
    _write_many(table)
    command = "import sys; sys.argv[0] = 'vflens'; from vflens.cli.main import main; main()"
    options = ["--label", "y", "--lambda", "1", "--out", str(tmp_path / "out.csv")]

    def peak() -> float:
        subprocess.run(
            [sys.executable, "-c", command, "release", str(table), *options], check=True, capture_output=True
        )
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024

    mebibytes = benchmark.pedantic(peak, rounds=1)
    benchmark.extra_info["MiB"] = mebibytes
    print(f"\npeak of {MANY:,} rows: {mebibytes:.0f} MiB")
    assert mebibytes < 300


def _write_many(path: Path) -> None:
    """More rows than fit, block by block: five numbers and a label each."""
    rng = np.random.default_rng(0)
    names = [*"abcde", "y"]
    with csv.CSVWriter(path, pa.schema([(name, pa.float64()) for name in names])) as file:
        for _ in range(MANY // ROWS):
            columns = [*rng.normal(size=(5, ROWS)), rng.integers(0, 2, ROWS).astype(float)]
            file.write_table(pa.table(dict(zip(names, columns, strict=True))))


@pytest.mark.benchmark(group="release")
def test_correlated_release_of_a_table_of_adults_size(benchmark: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(48_842, 14))
    frame = pd.DataFrame(x).rename(columns=str)
    frame["y"] = np.where(x @ rng.normal(size=14) + rng.normal(size=len(x)) > 0, 1, -1)
    frame.to_parquet(tmp_path / "t.parquet")
    options = ReleaseOptions(
        table=tmp_path / "t.parquet",
        out=tmp_path / "o.parquet",
        mechanism="correlated",
        label="y",
        m=100.0,
        force=True,
    )

    def seconds() -> float:
        began = process_time()
        release(options, lambda *_: None)
        return process_time() - began

    figures = {"release": [benchmark.pedantic(seconds, rounds=1), seconds(), seconds()]}
    report(benchmark, "correlated, 48,842 × 14, SVM solved twice", figures, "release", "CPU s")
