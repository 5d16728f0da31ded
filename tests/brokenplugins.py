"""Which promises of a contract a plug-in breaks."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import pytest

from vflens.testing.world import world_of


def broken(contract: type, fixture: str, plugin: Any) -> set[str]:
    """The tests of ``contract`` that ``plugin`` fails, each without "test_"."""
    found = set[str]()
    for name, test in inspect.getmembers(contract, inspect.isfunction):
        if name.startswith("test_"):
            for cell in _cells(test):
                given = {fixture: plugin, **cell}
                if "world" in inspect.signature(test).parameters:
                    given["world"] = world_of(plugin)
                try:
                    test(contract(), **given)
                except (Exception, pytest.fail.Exception):
                    found.add(name.removeprefix("test_"))
    return found


def _cells(test: Any) -> list[Mapping[str, Any]]:
    """The arguments that ``parametrize`` gives, [{}] without."""
    for mark in getattr(test, "pytestmark", []):
        names, values = mark.args
        return [dict(zip(names, v, strict=True)) if isinstance(names, tuple) else {names: v} for v in values]
    return [{}]
