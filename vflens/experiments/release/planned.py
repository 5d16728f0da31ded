"""A release of a table that a TOML file describes: its columns, and the plan in its ``[release]``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from vflens.config import DataPartyConfig, load_description, load_party, plan_table, read_toml, validate
from vflens.errors import ConfigError
from vflens.experiments.release.file import OwnersTable
from vflens.experiments.release.options import ReleaseOptions
from vflens.names import did_you_mean
from vflens.tables.cells import ROW_NUMBER, of_file
from vflens.tables.description import PartyFile
from vflens.tables.reading import feature_names
from vflens.types import Document

#: The settings of ``[release]``; all else is the table's own, or secret.
SETTINGS = (
    *("mechanism", "lambda", "target_mse", "epsilon", "delta", "diameter", "pi", "matched", "lower", "upper"),
    *("m", "theta", "rho", "keep_ids", "excel_safe", "verify"),
)


def options_for(source: Path, out: Path, given: Document) -> ReleaseOptions:
    """The options of a release of the table ``source``, or of the one that it describes, to ``out``.

    ``given`` by name stands before what a description states.

    Raises:
        ConfigError: a setting is unknown or out of its range, or they contradict each other.
        DataError: the described table cannot be read.
    """
    stated = _stated(source) if source.suffix == ".toml" else {}
    settings = {"table": source, "mechanism": "gaussian", **stated, **given, "out": out}
    for name in ("ids", "encode"):  # a flag adds to those of the description
        settings[name] = [*stated.get(name, ()), *given.get(name, ())]
    return validate(TypeAdapter(ReleaseOptions), settings, f"{source}: [release]" if stated else str(source))


def check_plan(source: Path) -> None:
    """Refuse a ``[release]`` of the description ``source`` that has an unknown setting."""
    for name in plan_table(source, "release"):
        if name not in SETTINGS:
            near = did_you_mean(name, SETTINGS)
            raise ConfigError(
                f"{source}: [release]: no setting is called {name!r}{near}: it has {', '.join(SETTINGS)}"
            )


def _stated(source: Path) -> Document:
    check_plan(source)
    stated = plan_table(source, "release")
    if stated.get("pi", "identity") not in ("identity", "standardise"):
        stated["pi"] = str(source.resolve().parent / str(stated["pi"]))
    stated |= {name: as_text(stated[name]) for name in ("diameter", "lower", "upper") if name in stated}
    if "lambda" in stated:
        stated["lambda_"] = stated.pop("lambda")
    spec = _spec(source)
    names = OwnersTable(spec.file, spec).names
    known = spec if spec.id_column in names else spec.model_copy(update={"id_column": ROW_NUMBER})
    with of_file(spec.file):
        kept = feature_names(known, names)
    left = [name for name in names if name not in {*kept, spec.label_column}]
    if stated.get("keep_ids") and set(left) - {spec.id_column}:
        raise ConfigError(
            f"{source}: keep_ids = true would release columns that it leaves out: name them in columns, or "
            "remove keep_ids"
        )
    encode = [f"{column}={kind}" for column, kind in spec.encode.items() if column in kept]
    own = {
        "ids": left,
        "label": spec.label_column,
        "encode": encode,
        "missing": spec.missing,
        "described": spec,
    }
    return {**own, "table": spec.file, **stated}


def _spec(source: Path) -> PartyFile:
    if "role" not in read_toml(source):
        return load_description(source)
    config = load_party(source)
    if not isinstance(config, DataPartyConfig):
        raise ConfigError(f"{source} configures the {config.role}, which has no table: give another file")
    return config.data


def as_text(value: Any) -> Any:
    """A number, or one for each column, as the command line takes them."""
    if value is None or isinstance(value, str):
        return value
    try:
        return ",".join(map(str, value))
    except TypeError:  # one number
        return str(value)
