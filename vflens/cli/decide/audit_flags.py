"""What the flags of ``vflens audit`` say: kinds of columns, widths, names."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import typer

from vflens.cli.decide.planned_flags import typed
from vflens.cli.decide.thresholds import Gate
from vflens.errors import ConfigError
from vflens.types import Document

_PLAN = (
    *("models", "rows", "slow_rows", "known", "seed", "most_leak", "least_error", "most_loss", "tolerance"),
    *("training", "label_kind"),
)
_AIMS = ("most_leak", "least_error")


def plan(given: typer.Context, source: str) -> Document:
    """The plan: what ``[audit]`` of ``source`` states, and in its place what was typed.

    Raises:
        ConfigError: a setting or a flag does not fit.
    """
    from vflens.experiments.audit.given import planned

    stated, flags = planned(Path(source)), typed(given, _PLAN)
    if "tolerance" in flags:
        flags["tolerance"] = widths(flags["tolerance"])
    if flags.keys() & set(_AIMS):  # one of two aims replaces both
        stated = {name: value for name, value in stated.items() if name not in _AIMS}
    return {**stated, **flags}


def kinds(texts: Sequence[str]) -> dict[str, str]:
    """Column → kind of each COLUMN=KIND."""
    from vflens.tables.encodings import column_and_kind

    wrong = next((text for text in texts if not column_and_kind(text)[0]), None)
    if wrong is not None:
        raise ConfigError(f"--encode {wrong!r}: give COLUMN=KIND, such as job=one_hot or opened=date")
    return dict(map(column_and_kind, texts))


def stated(widths: Mapping[str, float], gated: Gate) -> dict[str, float]:
    """The tolerances of the plan, ``widths``, and of the thresholds.

    Raises:
        ConfigError: two of one column differ.
    """
    for column, own in widths.items():
        if gated.tolerance.get(column, own) != own:
            raise ConfigError(
                f"tolerance.{column} = {own:g}, and a threshold states {gated.tolerance[column]:g}: "
                "state one distance"
            )
    return {**widths, **gated.tolerance}


def widths(texts: Sequence[str]) -> dict[str, float]:
    """Column → width of each COLUMN=WIDTH."""
    found = {}
    for text in texts:
        column, _, width = text.rpartition("=")
        try:
            found[column] = float(width)
        except ValueError:
            found[column] = 0.0
        if not (column and 0 < found[column] < math.inf):
            raise ConfigError(
                f"tolerance {text!r}: give COLUMN=WIDTH with a width above 0, such as income=500"
            )
    return found


def names(text: str | None) -> list[str] | None:
    """The names of a comma-separated list, as :func:`vflens.names.listed` writes it; None without one."""
    from vflens.names import names_of

    return None if text is None else names_of(text)


def of_model(weights: Path | None, inputs: str | None, label: str | None, kind: str | None) -> Document:
    """The ``label`` of a planned model and its ``kind``, as a source has them; a trained one has ``inputs``.

    Raises:
        ConfigError: inputs without ``weights``, or a label beside them.
    """
    if weights is None and inputs is not None:
        raise ConfigError("--inputs names those of a model: give --weights too")
    if weights is not None and (label or kind):
        raise ConfigError("--label with --weights: a trained model needs no labels, leave it out")
    return {"label": label, "label_kind": kind}
