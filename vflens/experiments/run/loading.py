"""The experiment in a TOML file, of whichever setting."""

from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

from vflens.config import read_toml, validate
from vflens.errors import ConfigError
from vflens.experiments.run.any_experiment import AnyPartiesExperiment
from vflens.experiments.run.horizontal.experiment import HorizontalExperiment
from vflens.experiments.run.vertical.experiment import Experiment
from vflens.types import Array, Setting

#: What training left in a run in one process, for runs that would train the same bits: data party → its
#: state; empty: none has trained yet. None: nothing is kept.
TRAINED: ContextVar[dict[str, Mapping[str, Array]] | None] = ContextVar("TRAINED", default=None)

#: Every setting that can be run.
KINDS: Mapping[Setting, type[AnyPartiesExperiment]] = {
    k.setting: k for k in (Experiment, HorizontalExperiment)
}

AnyExperiment = TypeVar("AnyExperiment", bound=AnyPartiesExperiment)


def load_experiment(file: Path) -> Experiment:
    """The experiment in ``file``; relative paths in it are relative to the file's folder, ``out`` to the
    current one.

    Raises:
        ConfigError: unreadable, not TOML, or a setting that is missing, unknown or out of range.
    """
    return load_as(Experiment, file)


def experiment_kind(settings: Mapping[str, Any]) -> type[AnyPartiesExperiment]:
    """Which kind of experiment has such ``settings``: a table of its own says so."""
    return next((kind for kind in KINDS.values() if kind.table in settings), Experiment)


def load_any(file: Path) -> AnyPartiesExperiment:
    """An experiment of any setting; see :func:`load_experiment`."""
    settings = read_toml(file)
    if "role" in settings:
        raise ConfigError(
            f"{file} is a party's own file, no experiment: start the party with vflens serve "
            f"{settings['role']} --config {file}"
        )
    kind = experiment_kind(settings)
    if kind is Experiment and "clients" in (settings.get("parties") or {}):
        raise ConfigError(
            f"{file}: parties.clients without a table [horizontal]: add it with rounds, or name active "
            "and passive parties"
        )
    return load_as(kind, file)


def load_as(kind: type[AnyExperiment], file: Path) -> AnyExperiment:
    """An experiment from a file that holds more; see :func:`load_experiment`."""
    experiment = validate(TypeAdapter(kind), read_toml(file), str(file))
    base = file.resolve().parent
    files = {
        name: spec.model_copy(update={"file": base / spec.file}) for name, spec in experiment.files.items()
    }
    return experiment.model_copy(update={"files": files})
