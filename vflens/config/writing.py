"""A configuration as TOML."""

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import tomli_w

Shown: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def toml_text(settings: Mapping[str, Any], shown: Shown = dict) -> str:
    """``settings``, as ``shown``, as a TOML document: enumerations and paths as text; None, which TOML lacks,
    left out.
    """
    rest = {name: value for name, value in settings.items() if name != "data"}
    data = {name: value for name, value in settings.items() if name == "data" and value is not None}
    head = tomli_w.dumps(_plain(shown(rest)))
    return f"{head}\n{_data_text(json.dumps(data, default=str), shown)}" if data else head


@lru_cache(maxsize=4)
def _data_text(data: str, shown: Shown) -> str:
    """A party's ``data`` in JSON as TOML: clients have their columns in common."""
    return tomli_w.dumps(_plain(shown(json.loads(data))))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items() if v is not None}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return str(value) if isinstance(value, str | Path) else value
