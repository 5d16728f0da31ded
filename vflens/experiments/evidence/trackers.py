"""The metrics of runs in MLflow and TensorBoard, by their own libraries (the extra ``export``)."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from vflens.errors import ConfigError, StorageError, UnavailableError, install_extra
from vflens.experiments.results.record import RecordedRun
from vflens.experiments.results.titles import defenses, labels

_NOT_IN_NAMES = re.compile(r"[^\w\-. /]")  # MLflow takes these
#: By default MLflow tries for minutes.
_PATIENCE = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "MLFLOW_HTTP_REQUEST_TIMEOUT": "20"}
_LONGEST = 250  # characters of a name


def metrics_of(run: RecordedRun) -> dict[str, float]:
    """The finite metrics of ``run`` as "PARTY/METRIC/ATTACK/TARGET/…"; of several milestones the last one."""
    found = sorted(_named(run), key=lambda one: one[0])
    return {name: value for _, name, value in found if math.isfinite(value)}


def _named(run: RecordedRun) -> Iterator[tuple[int, str, float]]:
    for party in run.parties:
        for m in party.metrics:
            parts = (party.name, m.name, m.attack, m.target, m.adversary, m.scored_set, m.column, m.detail)
            name = "/".join(_NOT_IN_NAMES.sub("_", part) for part in parts if part)[:_LONGEST]
            yield m.step, name, m.value


def to_mlflow(runs: Sequence[RecordedRun], uri: str) -> list[str]:
    """Write each of ``runs`` as a run of MLflow at the tracking server ``uri``; their identifiers.

    A run is in the experiment of its name; its defences are a tag.

    Raises:
        ConfigError: MLflow is not installed.
        UnavailableError: the server does not answer, or refuses.
    """
    try:
        from mlflow import MlflowClient
        from mlflow.entities import Metric
        from mlflow.exceptions import MlflowException
    except ImportError:
        raise ConfigError(f"--mlflow needs the package mlflow-skinny: {install_extra('export')}") from None
    for name, value in _PATIENCE.items():
        os.environ.setdefault(name, value)
    made = []
    try:
        client = MlflowClient(tracking_uri=uri)
        for run, label in zip(runs, labels(runs), strict=True):
            known = client.get_experiment_by_name(run.name)
            experiment = known.experiment_id if known else client.create_experiment(run.name)
            created = client.create_run(
                experiment, run_name=label, tags={"vflens.defenses": ", ".join(defenses(run))}
            )
            figures = [Metric(name, value, 0, 0) for name, value in metrics_of(run).items()]
            for at in range(0, len(figures), 1000):  # so many in one request
                client.log_batch(created.info.run_id, metrics=figures[at : at + 1000])
            client.set_terminated(created.info.run_id)
            made.append(created.info.run_id)
    except MlflowException as error:
        said = str(error).splitlines()[0]
        raise UnavailableError(
            f"MLflow at {uri} takes no run ({said}): look at the server, or its address"
        ) from None
    return made


def to_tensorboard(runs: Sequence[RecordedRun], folder: Path) -> list[str]:
    """Write the metrics of each of ``runs`` as scalars for TensorBoard, in a folder of its own in ``folder``.

    Raises:
        ConfigError: tensorboardX is not installed.
        StorageError: the files cannot be written.
    """
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        raise ConfigError(
            f"--tensorboard needs the package tensorboardX: {install_extra('export')}"
        ) from None
    made = []
    try:
        for run, label in zip(runs, labels(runs), strict=True):
            place = folder / _NOT_IN_NAMES.sub("_", f"{run.name} {label}".replace("/", "_"))
            with SummaryWriter(str(place), write_to_disk=True) as writer:
                for name, value in metrics_of(run).items():
                    writer.add_scalar(name, value, 0)
            made.append(str(place))
    except OSError as error:
        raise StorageError(f"{folder} cannot be written ({error.strerror}): choose another folder") from error
    return made
