"""A configuration as TOML."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w


def toml_text(settings: Mapping[str, Any]) -> str:
    """``settings`` as a TOML document: enumerations and paths as text; None, which TOML lacks, left out."""
    return tomli_w.dumps(_plain(settings))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items() if v is not None}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return str(value) if isinstance(value, str | Path) else value
