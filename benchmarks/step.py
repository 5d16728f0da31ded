"""Prints what a training step costs, as one JSON line: processor time, all parties in this process, logs on.

``PYTHONPATH=CHECKOUT python benchmarks/step.py`` measures the package in ``CHECKOUT``. It asks no more of it
than the command line and the coordinator's training: checkouts from before it was called ``vflens`` can be
measured too. ``--without unchained`` leaves out an auditor's evidence, ``--without unlogged`` what messages
leave in logs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import mkdtemp
from time import process_time
from typing import Any

EXPERIMENT = """
name = "step"
data = {{ name = "synthetic", rows = {rows}, features = {columns}, classes = 2 }}
split = {{ kind = "fraction", fraction = 0.5 }}
parties = {{ passive = {passive} }}
training = {{ epochs = {epochs}, batch_size = {batch}, learning_rate = 0.01 }}
"""


def main() -> None:
    """Train once, print, and end without the rest of the run."""
    asked = _asked()
    out = Path(mkdtemp(prefix="vflens-step-"))
    file = out / "experiment.toml"
    names = [f"passive-{i:02}" for i in range(asked.parties)]
    file.write_text(EXPERIMENT.format(**vars(asked), passive=json.dumps(names)), encoding="utf-8")
    _measured(_leader(), asked, out)
    if asked.without:
        import_module(f"benchmarks.{asked.without}").leave_out()
    sys.argv = ["vflens", "run", str(file), "--out", str(out / "runs"), "--in-process"]
    _module("cli.main").main()


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in (("rows", 20_000), ("columns", 40), ("batch", 256), ("parties", 1), ("epochs", 30)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--without", choices=("unchained", "unlogged"))
    return parser.parse_args()


def _measured(leader: Any, asked: argparse.Namespace, out: Path) -> None:
    """Let the class ``leader`` print what the steps of an epoch took, and end after its training.

    Other work on the machine makes some epochs slower: the least and the median say more than the mean.
    """
    train, report, marks = leader._trained_here, leader._report, list[float]()

    def reported(self: Any, stage: str, done: int, total: int) -> None:
        marks.append(process_time())
        report(self, stage, done, total)

    def measured(self: Any) -> None:
        marks.append(process_time())
        trained = train(self)
        per_epoch = (trained.steps - trained.first) / asked.epochs
        spent = [(end - begin) / per_epoch * 1e6 for begin, end in pairwise(marks)]
        print(json.dumps({**vars(asked), "us": round(median(spent), 1), "least_us": round(min(spent), 1)}))
        sys.stdout.flush()
        shutil.rmtree(out)
        os._exit(0)

    leader._trained_here, leader._report = measured, reported


def _leader() -> Any:
    """The class that trains; it stood beside the horizontal ones before they had wings."""
    try:
        return _module("coordinator.vertical.coordinator").Coordinator
    except ModuleNotFoundError:
        return _module("coordinator.coordinator").Coordinator


def _module(name: str) -> Any:
    return import_module(name if find_spec("vfl") else f"vflens.{name}")  # "vfl": before it was called vflens


if __name__ == "__main__":
    main()
