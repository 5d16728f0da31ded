"""Protected training beside the clear run, in processes: steps a second, processor time and bytes of a step.

``python -m benchmarks.protected logistic`` prints a table for docs/performance.md, ``linear`` that of linear
regression, with numbers behind it of so many columns alone. What a step takes is the difference of a long and
a short run: neither the start nor the opening of features counts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.delay import round_trips_of
from vflens.experiments.results.record import RecordedRun, read_runs
from vflens.experiments.run.run import run
from vflens.experiments.run.vertical.experiment import Experiment
from vflens.numerics.shares.response import IDENTITY, SIGMOID, Response, largest_rate
from vflens.numerics.shares.step import mask_sizes
from vflens.storage.metrics import Name
from vflens.types import Phase

COLUMNS = (20, 30, 300, 1000)
ROWS, BATCH, EPOCH = 3200, 256, 10  # of all, of a step; steps of an epoch
L2 = 1e-4
SHORT, LONG, FAR = 2, 42, 22  # epochs; of the long run over links that take time
ROUND_TRIP = 0.02
#: What is between the parties, and the seconds of a round trip.
LINKS: Mapping[str, tuple[dict[str, str], float]] = {
    "Unix sockets": ({"transport": "unix"}, 0.0),
    "mutual TLS": ({"transport": "tcp"}, 0.0),
    "round trips of 20 ms": ({"transport": "unix"}, ROUND_TRIP),
}


def _classes(home: Path, columns: int) -> dict[str, Any]:
    """Settings of logistic regression: two classes."""
    return {
        "data": {
            "name": "synthetic",
            "rows": ROWS,
            "features": columns,
            "classes": 2,
            "informative": 10,
        },
        "split": {"kind": "fraction", "fraction": 0.5},
    }


def _number(home: Path, columns: int) -> dict[str, Any]:
    """Settings of linear regression: a table of each party below ``home``, all numbers uniform."""
    rng, half = np.random.default_rng(0), columns // 2
    names = [f"x{i}" for i in range(columns)]
    tables = {"active": ["label", *names[:half]], "passive": names[half:]}
    for party, held in tables.items():
        drawn = {"id": np.arange(ROWS)} | {name: rng.random(ROWS) for name in held}
        pq.write_table(pa.table(drawn), home / f"{party}.parquet")
    files: dict[str, dict[str, Any]] = {p: {"file": home / f"{p}.parquet"} for p in tables}
    files["active"] |= {"label_column": "label", "label_kind": "number", "bounds": {"label": (0.0, 1.0)}}
    return {"files": files, "model": {"family": "linear_regression"}}


class Kind(NamedTuple):
    """What is trained: its settings for a folder and a number of columns, its response and learning rate."""

    settings: Callable[[Path, int], dict[str, Any]]
    response: Response
    rate: Callable[[int], float]


KINDS: Mapping[str, Kind] = {
    "logistic": Kind(_classes, SIGMOID, lambda columns: 0.1),
    "linear": Kind(_number, IDENTITY, lambda columns: largest_rate(columns + 1, L2)),
}


class Cost(NamedTuple):
    """What a run or a step costs: seconds of the clock, of the processor in all processes, and bytes."""

    clock: float
    core: float
    sent: float


def trained(home: Path, columns: int, protection: str, link: str, *, epochs: int, kind: str) -> Cost:
    """A run on batches of 256 rows, half of the columns at each data party."""
    training = {"epochs": epochs, "batch_size": BATCH, "optimizer": "sgd", "l2": L2}
    network, seconds = LINKS[link]
    settings: dict[str, Any] = {
        "name": "speed",
        "out": home,
        **KINDS[kind].settings(home, columns),
        "training": {**training, "protection": protection, "learning_rate": KINDS[kind].rate(columns)},
        "network": network,
    }
    before = _core()
    with round_trips_of(seconds) if seconds else nullcontext():
        record = read_runs(list(run(Experiment.model_validate(settings)).scenarios))[0]
    return Cost(record.value(Name.TRAIN_SECONDS) or 0.0, _core() - before, _recorded(record))


def _core() -> float:
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _recorded(record: RecordedRun) -> float:
    crossed = (c for party in record.parties for c in party.crossings() if c.phase == Phase.TRAIN)
    return sum(c.nbytes or 0 for c in crossed)


def of_a_step(columns: int, protection: str, link: str, kind: str = "logistic") -> Cost:
    """What a step takes."""
    long, made = FAR if LINKS[link][1] else LONG, list[Cost]()
    for epochs in (SHORT, long):
        with TemporaryDirectory() as home:
            made.append(trained(Path(home), columns, protection, link, epochs=epochs, kind=kind))
    short, whole = made
    return Cost(*((b - a) / (EPOCH * (long - SHORT)) for a, b in zip(short, whole, strict=True)))


def main() -> None:
    """Print the table."""
    print("| rows × columns | links | in the clear | on shares | bytes a step |\n|---|---|---|---|---|")
    kind, *wanted = sys.argv[1:] or ["logistic"]
    for columns in map(int, wanted or COLUMNS):
        dealt = 8 * mask_sizes(BATCH, columns + 1, 1, KINDS[kind].response)[1]
        for link in LINKS:
            clear, shared = (of_a_step(columns, protection, link, kind) for protection in ("none", "shares"))
            size = f"{shared.sent / 1e3:.1f} kB, {dealt / 1e3:.1f} dealt"
            print(
                f"| {BATCH} × {columns} | {link} | {_timed(clear)} | {_timed(shared)} | {size} |", flush=True
            )


def _timed(cost: Cost) -> str:
    return f"{1 / cost.clock:.3g} steps/s, {cost.clock * 1e3:.2g} ms; {cost.core * 1e3:.2g} ms of a core"


if __name__ == "__main__":
    main()
