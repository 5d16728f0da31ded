"""What `make bench-guard` measures: whole commands, and what one more step of them takes.

Every experiment uses settings that each release knows. What an earlier release refuses is left out in words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_TABLE = {"name": "synthetic", "rows": 20_000, "features": 40, "classes": 2}
_PER_EPOCH = 63  # batches of 256 in the 16,000 training rows
_HERE, _PROCESSES = ("--in-process",), ()


@dataclass(frozen=True)
class Guarded:
    """A figure: the processor seconds of ``vflens *command``, over ``count``.

    ``less`` names the figure of the same command with less to do: its seconds are subtracted first, so that
    only what ``count`` counts is left. ``experiment`` is written to ``NAME.toml`` in the command's folder, a
    made-up table of so many ``columns`` to ``NAME.csv``.
    """

    name: str
    command: tuple[str, ...]
    experiment: Mapping[str, Any] | None = None
    count: int = 1
    less: str | None = None
    columns: int = 0


def _run(name: str, flags: tuple[str, ...], count: int = 1, less: str | None = None, **more: Any) -> Guarded:
    command = ("run", f"{name}.toml", "--out", name, "--json", *flags)
    return Guarded(name, command, _experiment(**more), count, less)


def _experiment(epochs: int = 1, **more: Any) -> dict[str, Any]:
    """Softmax regression of two parties, half of the columns each."""
    return {
        "name": "guard",
        "data": _TABLE,
        "split": {"kind": "fraction", "fraction": 0.5},
        "training": {"epochs": epochs, "batch_size": 256, "learning_rate": 0.01},
        **more,
    }


_SEVEN: dict[str, Any] = {"parties": {"passive": [f"p{i}" for i in range(7)]}}
_NETWORK: dict[str, Any] = {
    "model": {"architecture": "mlp", "width": 64, "top": [32]},
    "aggregator": "active",
}
_PREDICTED: dict[str, Any] = {
    "data": {**_TABLE, "rows": 160_000},
    "predict_share": 0.9,
}  # 16,000 are trained on


def _rounds(rounds: int) -> dict[str, Any]:
    """Federated averaging of three clients; a server draws no columns."""
    return {
        "data": {"name": "digits"},
        "split": {"kind": "rows", "alpha": 0.5},
        "parties": {"clients": 3},
        "horizontal": {"rounds": rounds, "local_epochs": 1},
        "training": {"batch_size": 64, "learning_rate": 0.05},
    }


#: In the order in which they run: what others subtract stands before them.
GUARDED = (
    Guarded("start", ("--help",)),
    _run("run-in-process", _HERE),
    _run("step", _HERE, 39 * _PER_EPOCH, "run-in-process", epochs=40),
    _run("run-seven-parties", _HERE, **_SEVEN),
    _run("step-seven-parties", _HERE, 14 * _PER_EPOCH, "run-seven-parties", epochs=15, **_SEVEN),
    _run("run-network", _HERE, **_NETWORK),
    _run("step-network", _HERE, 24 * _PER_EPOCH, "run-network", epochs=25, **_NETWORK),
    _run("run-processes", _PROCESSES),
    _run("step-processes", _PROCESSES, 29 * _PER_EPOCH, "run-processes", epochs=30),
    _run("rows-predicted", _HERE, 140_000, "run-in-process", **_PREDICTED),
    _run("rounds-in-process", _HERE, **_rounds(60)),
    *(
        Guarded(f"audit-{d}", ("audit", f"audit-{d}.csv", "--label", "y", "--json"), columns=d)
        for d in (10, 40)
    ),
    Guarded("report", ("report", "run-in-process/guard", "--out", "report.html")),
)
