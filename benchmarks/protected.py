"""Steps a second of protected training beside the clear run, in processes over sockets, and bytes a step.

``python benchmarks/protected.py`` prints a table for docs/performance.md.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from vflens.experiments.results.record import RecordedRun, read_runs
from vflens.experiments.run.run import run
from vflens.experiments.run.vertical.experiment import Experiment
from vflens.storage.metrics import Name
from vflens.types import Phase

COLUMNS = (20, 300, 1000)
STEPS, BATCH = 60, 256


def trained(home: Path, columns: int, protection: str) -> RecordedRun:
    """A run of 60 steps of 256 rows of two classes, half of the columns at each data party."""
    training = {"epochs": 6, "batch_size": BATCH, "optimizer": "sgd", "learning_rate": 0.1}
    settings: dict[str, Any] = {
        "name": "speed",
        "out": home,
        "data": {"name": "synthetic", "rows": 3200, "features": columns, "classes": 2, "informative": 10},
        "split": {"kind": "fraction", "fraction": 0.5},
        "training": {**training, "protection": protection},
    }
    made = run(Experiment.model_validate(settings))
    return read_runs(list(made.scenarios))[0]


def bytes_a_step(record: RecordedRun) -> float:
    """Bytes of all training messages that the parties recorded, by step; of shares those of steps alone."""
    crossed = (c for p in record.parties for c in p.crossings() if c.phase == Phase.TRAIN)
    return sum(c.nbytes or 0 for c in crossed) / STEPS


def main() -> None:
    """Print the table."""
    print("| rows × columns | in the clear | on shares | ms a step | bytes a step |\n|---|---|---|---|---|")
    for columns in COLUMNS:
        found = {}
        for protection in ("none", "shares"):
            with TemporaryDirectory() as home:
                record = trained(Path(home), columns, protection)
                found[protection] = record.value(Name.STEPS_PER_SECOND) or 0.0, bytes_a_step(record)
        (clear, _), (shared, size) = found["none"], found["shares"]
        print(
            f"| {BATCH} × {columns} | {clear:.0f} steps/s | {shared:.0f} steps/s | {1000 / shared:.1f} "
            f"| {size / 1000:.1f} kB |"
        )


if __name__ == "__main__":
    main()
