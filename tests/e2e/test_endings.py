"""A process ends with its exit code: no thread of a C++ library outlives the interpreter and prints."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TASKS = Path("/proc/self/task")
READS = """
import os, sys
import pyarrow.parquet
from vflens.storage.metrics import Metrics
from pathlib import Path
file, before = Path(sys.argv[1]), len(os.listdir("/proc/self/task"))
metrics = Metrics(file)
metrics.add("mse", 1.0)
metrics.save()
assert Metrics(file).last("mse") == 1.0
threads = len(os.listdir("/proc/self/task")) - before
loaded = "pyarrow.dataset" in sys.modules
sys.exit(f"{threads} more threads, pyarrow.dataset: {loaded}" if threads or loaded else 0)
"""
RUN = """
name = "ends"
seed = 1
out = "{out}"
data = {{ name = "synthetic", rows = 400, features = 16, classes = 2 }}
split = {{ kind = "fraction", fraction = 0.7 }}
parties = {{ passive = ["a", "b", "c", "d", "e", "f", "g"] }}
training = {{ epochs = 1, batch_size = 100 }}
network = {{ transport = "unix" }}
attacks = [{{ name = "half" }}]
"""


@pytest.mark.skipif(not TASKS.is_dir(), reason="threads are counted in /proc")
def test_reading_metrics_starts_no_thread_and_loads_no_dataset_reader(tmp_path: Path) -> None:
    command = [sys.executable, "-c", READS, str(tmp_path / "metrics.parquet")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.facts
@pytest.mark.timeout(1800)
def test_a_dozen_runs_of_nine_processes_end_without_a_word_of_a_library(tmp_path: Path) -> None:
    """108 parties: VFLENS_RUNS=100 repeats it as often."""
    file = tmp_path / "ends.toml"
    file.write_text(RUN.format(out=tmp_path / "runs"))
    for _ in range(int(os.environ.get("VFLENS_RUNS", "12"))):
        command = [sys.executable, "-m", "vflens.cli.main", "run", str(file)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "terminate" not in done.stderr
    outputs = [log.read_text() for log in (tmp_path / "runs").rglob("output.log")]
    assert len(outputs) >= 9
    assert not [text for text in outputs if "terminate" in text]
