"""Metrics of a run in MLflow and TensorBoard, read back by other means than they were written."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from commandline import Refused, Run, finished_run, refused, vflens

from vflens.experiments.evidence.trackers import metrics_of
from vflens.experiments.results.record import read_runs

_FIXTURES = (finished_run, refused, vflens)  # used by name


def records(file: Path) -> list[bytes]:
    """The records of an event file: length, its checksum, data, checksum."""
    data, at, found = file.read_bytes(), 0, []
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        found.append(data[at + 12 : at + 12 + length])
        at += 16 + length
    return found


def measured(folder: Path) -> dict[str, float]:
    """The last MSE on prediction rows of each attack, from the target's own table."""
    rows = pq.read_table(next(folder.rglob("passive/metrics.parquet"))).to_pylist()
    found = [r for r in rows if r["metric"] == "mse" and r["scored_set"] == "predict"]
    return {r["attack"]: r["value"] for r in sorted(found, key=lambda r: r["step"])}


def test_names_say_whose_metric_of_which_attack_it_is(finished_run: Path) -> None:
    (run, *_) = read_runs([finished_run])
    metrics = metrics_of(run)
    own = measured(finished_run)
    assert own
    for attack, value in own.items():
        named = [v for k, v in metrics.items() if k.startswith(f"passive/mse/{attack}/")]
        assert value in named
    assert all(math.isfinite(value) for value in metrics.values())


def test_tensorboard_reads_the_same_figures(vflens: Run, finished_run: Path, tmp_path: Path) -> None:
    from tensorboardX.proto.event_pb2 import Event

    made = json.loads(vflens("export", finished_run, "--tensorboard", tmp_path / "logs", "--json").out)
    (place,) = made["tensorboard"]
    (file,) = Path(place).iterdir()
    events = [Event.FromString(record) for record in records(file)]
    scalars = {v.tag: v.simple_value for e in events for v in e.summary.value}
    wanted = metrics_of(read_runs([finished_run])[0])
    assert {name.replace(" ", "_"): v for name, v in scalars.items()} == pytest.approx(
        {name.replace(" ", "_"): v for name, v in wanted.items()}, rel=1e-6, abs=1e-30
    )


def test_mlflow_reads_the_same_figures(
    vflens: Run, finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the files of its own store: a folder for a run, a file for a metric."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    store = tmp_path / "mlruns"
    made = json.loads(vflens("export", finished_run, "--mlflow", f"file:{store}", "--json").out)
    (identifier,) = made["mlflow"]
    (folder,) = store.glob(f"*/{identifier}/metrics")
    read = {
        file.relative_to(folder).as_posix(): float(file.read_text(encoding="utf-8").split()[1])
        for file in folder.rglob("*")
        if file.is_file()
    }
    assert read == pytest.approx(metrics_of(read_runs([finished_run])[0]))


def test_what_cannot_be_written_is_refused_in_a_sentence(
    refused: Refused, finished_run: Path, tmp_path: Path
) -> None:
    assert refused(2, "export", finished_run).startswith("nothing to write to: give --mlflow URI")
    (tmp_path / "file").touch()
    assert "cannot be written" in refused(12, "export", finished_run, "--tensorboard", tmp_path / "file/x")
    said = refused(11, "export", finished_run, "--mlflow", "http://127.0.0.1:9")
    assert said.startswith("MLflow at http://127.0.0.1:9 takes no run (")
