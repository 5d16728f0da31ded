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
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
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
    coordinator = _module("coordinator.coordinator").Coordinator
    coordinator._trained_here = _measured(coordinator._trained_here, asked, out)
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


def _measured(train: Callable[[Any], Any], asked: argparse.Namespace, out: Path) -> Callable[[Any], None]:
    def measured(leader: Any) -> None:
        began = process_time()
        trained = train(leader)
        steps = trained.steps - trained.first
        print(json.dumps({**vars(asked), "steps": steps, "us": (process_time() - began) / steps * 1e6}))
        sys.stdout.flush()
        shutil.rmtree(out)
        os._exit(0)

    return measured


def _module(name: str) -> Any:
    return import_module(name if find_spec("vfl") else f"vflens.{name}")  # "vfl": before it was called vflens


if __name__ == "__main__":
    main()
