"""``vflens export``: the metrics of runs in the trackers that people have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vflens.cli.output import Json, emit
from vflens.errors import ConfigError


def export(
    folders: Annotated[list[Path], typer.Argument(help="run folders")],
    mlflow: Annotated[
        str | None, typer.Option(metavar="URI", help="the tracking server, as http://127.0.0.1:5000")
    ] = None,
    tensorboard: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="a log folder of TensorBoard")
    ] = None,
    json: Json = False,
) -> None:
    """Write the metrics of runs into MLflow, for TensorBoard, or both (the extra export).

    Example: vflens export runs/digits --tensorboard logs
    """
    from vflens.experiments.evidence.trackers import to_mlflow, to_tensorboard
    from vflens.experiments.results.record import read_runs

    if mlflow is None and tensorboard is None:
        raise ConfigError("nothing to write to: give --mlflow URI, --tensorboard FOLDER, or both")
    runs, made = read_runs(folders), dict[str, list[str]]()
    if tensorboard is not None:
        made["tensorboard"] = to_tensorboard(runs, tensorboard)
    if mlflow is not None:
        made["mlflow"] = to_mlflow(runs, mlflow)
    emit(json, made, lambda: "\n".join(f"{to}: {place}" for to, places in made.items() for place in places))
