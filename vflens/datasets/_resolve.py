"""The data set for a name and options in a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic import TypeAdapter

from vflens.config import validate
from vflens.errors import ConfigError, DataError
from vflens.plugins.dataset import Dataset
from vflens.registry import DATASETS


def dataset(name: str, options: Mapping[str, Any]) -> Dataset:
    """The data set ``name`` ("digits", "openml:61") with these options, not yet read.

    Raises:
        PluginError: no data set has this name.
        ConfigError: an option is unknown, missing or out of range.
        DataError: it has no recipe "authors".
    """
    plugin, colon, number = name.partition(":")
    if colon and (plugin != "openml" or "id" in options):
        raise ConfigError(
            f"data set {name!r}: only openml:ID takes a number after a colon, and then no option id"
        )
    adapter: TypeAdapter[Dataset] = TypeAdapter(cast("type[Dataset]", DATASETS.get(plugin)))
    made = validate(adapter, {**options, "id": number} if colon else dict(options), f"data set {name!r}")
    if made.recipe == "authors" and not made.has_scripts():
        raise DataError(
            f"data set {name!r} has no recipe 'authors', their scripts do not treat it: "
            "choose clean or paper, or bank, robot, satellite or synthetic"
        )
    return made
