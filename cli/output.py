"""How commands print: text for people, one JSON document for programs."""

from __future__ import annotations

import contextlib
import json as json_module
import math
import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="print one JSON document instead of text")]


def emit(json: bool, data: Any, text: Callable[[], str]) -> None:
    """Print ``data`` as JSON or ``text()``; figures that are not finite become null."""
    if json:
        print(json_module.dumps(_finite(data), ensure_ascii=False))
        return
    print(text())


def note(message: str) -> None:
    """A word to the person at the terminal, on standard error: results alone go to standard output."""
    with contextlib.suppress(OSError):  # a full disk or a closed terminal does not end a party
        print(message, file=sys.stderr, flush=True)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
