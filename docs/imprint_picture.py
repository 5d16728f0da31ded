"""Picture of the page of ``imprint``: ``python docs/imprint_picture.py`` writes it, in some minutes.

``docs/attacks/imprint.svg``: rows of three clients that a masked sum gives away, with more and more units;
and behind defences of the clients.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from federation_pictures import Bars
from plugin_pictures import DOCS, bars

from vflens.experiments.results.record import read_runs
from vflens.experiments.run.horizontal.experiment import HorizontalExperiment
from vflens.experiments.run.run import run
from vflens.storage.files import load_arrays

ROWS, SEEDS = 48, (1, 2, 3, 4, 5)
CLIENTS = ("client-1", "client-2", "client-3")
#: Of the digits: the mean brightness of a picture, and its deviation over pictures.
BELIEVED = {"mean": 0.305, "deviation": 0.034}


def shares(units: int, precision: str = "float64", *defenses: dict[str, Any]) -> tuple[float, float]:
    """The share of rows that are marked as exact, and the error as a share of the best blind guess's."""
    marked, errors = list[float](), list[float]()
    for seed in SEEDS:
        with TemporaryDirectory() as home:
            made = {
                "name": "picture",
                "seed": seed,
                "out": home,
                "malicious": True,
                "data": {"name": "digits"},
                "split": {"kind": "rows"},
                "parties": {"clients": CLIENTS},
                "model": {"architecture": "mlp", "width": units, "top": [16], "precision": precision},
                "training": {"optimizer": "sgd", "batch_size": ROWS // 3, "learning_rate": 0.1},
                "horizontal": {"rounds": 1, "local_steps": 1, "secure_aggregation": True},
                "attacks": [{"name": "imprint", **BELIEVED}],
                "scenarios": [
                    {"name": "run", "defenses": [{"at": c, **d} for d in defenses for c in CLIENTS]}
                ],
            }
            (folder,) = run(HorizontalExperiment.model_validate(made), in_process=True).scenarios
            estimates = (folder / "server/estimates").glob("*.npz")
            marked.append(np.mean([(load_arrays(f)["status"] == "ok").mean() for f in estimates]))
            errors += [r.mse / r.blind for of in read_runs([folder]) for r in of.results]
    return float(np.mean(marked)), float(np.mean(errors))


def row(name: str, found: tuple[float, float], beside: str = "") -> tuple[str, float, str]:
    """The share of exact rows as a bar, with what stands ``beside`` it."""
    return name, found[0], f"{found[0]:.2f}{beside}, error {found[1]:.2f} of blind"


def picture() -> str:
    """The share of rows that are exact."""
    shown = Bars()
    for times in (1, 2, 4, 8):
        units = times * ROWS
        beside = f" ({(1 - 1 / units) ** (ROWS - 1):.2f} with bins of one mass)"
        shown.append(row(f"{units} units", shares(units), beside))
    shown.append(row("192 units, float32", shares(192, "float32")))
    for name, defense in (
        ("sparsification, .1", {"name": "sparsification", "kept": 0.1}),
        ("discretisation, 16 levels", {"name": "discretisation", "levels": 16}),
        ("dp_gaussian, level .01", {"name": "dp_gaussian", "clip": 1.0, "level": 0.01}),
        ("instahide", {"name": "instahide"}),
    ):
        shown.append(row(f"192 units, {name}", shares(192, "float64", defense)))
    return bars(
        f"imprint: share of {ROWS} rows of 3 clients that their masked sum gives away exactly", shown, 1.0
    )


def main(folder: Path = DOCS / "attacks") -> None:
    """Write it."""
    (folder / "imprint.svg").write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
