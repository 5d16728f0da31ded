"""The plug-in package of somebody else, as pip would have installed it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def installed(name: str, modules: Mapping[str, str], entry_points: str, site: Path) -> Iterator[None]:
    """Package ``name`` can be imported from the folder ``site``, and its plug-ins are found, until the end.

    Args:
        name: of the package, as imported.
        modules: module → its source.
        entry_points: text of ``entry_points.txt``.
        site: an empty folder or one to be made.
    """
    files = {f"{name}/{module}.py": source for module, source in {"__init__": "", **modules}.items()}
    info = f"{name}-1.0.dist-info"
    files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.0\n"
    files[f"{info}/entry_points.txt"] = entry_points
    for path, text in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        importlib.invalidate_caches()
        yield
    for module in [m for m in sys.modules if m.partition(".")[0] == name]:
        del sys.modules[module]
