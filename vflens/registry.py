"""Plug-ins by name: a sorted scan of a folder, then entry points; nothing is imported to list them.

A plug-in's name is its file's stem. Text after a colon is a label: ``wmi:printed`` is the plug-in ``wmi``.
Results keep the whole name, so that one run can hold two settings of one plug-in. A file without a leading
underscore defines exactly one public subclass of the family's base class. Other people's packages register
theirs as entry points.
"""

import ast
import importlib
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType

from vflens.errors import ConfigError, PluginError, VflensError
from vflens.names import NAME, REMEDIES, did_you_mean


@dataclass(frozen=True)
class Registry:
    """The plug-ins of one family: ``package`` is scanned, then the entry points of ``group``."""

    package: str
    group: str
    base: str  # "module:Class", imported only by get()

    @property
    def family(self) -> str:
        """What messages call it: "attacks", "defenses", "models", "datasets"."""
        return self.group.rpartition(".")[2]

    def names(self) -> list[str]:
        """All names, sorted; imports nothing."""
        return sorted({*self._files(), *self._entry_points()})

    def summary(self, name: str) -> str:
        """The first paragraph of the plug-in's file, read without importing it ("" for an entry point)."""
        file = self._files().get(_unlabelled(name))
        if file is None:
            return ""
        try:
            text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
        except (OSError, ValueError, SyntaxError) as error:
            return f"cannot be read ({type(error).__name__}): mend {file.name}"
        return " ".join(text.split("\n\n", 1)[0].split())

    def get(self, name: str) -> type:
        """The class of plug-in ``name``, which may carry a label.

        Raises:
            PluginError: unknown name, one that a file and an entry point share, failing import, or not
                exactly one public subclass of the base.
            ConfigError: it needs an extra that is not installed, or the label is no name.
        """
        name = _unlabelled(name)
        files, points = self._files(), self._entry_points()
        if name in files and name in points:
            raise PluginError(
                f"plug-in {name!r} is a file of {self.package} and an entry point of {self.group}: "
                "rename one of them"
            )
        if name in files:
            return self._one_class(self._import(f"{self.package}.{name}"), name)
        if name in points:
            return self._loaded(points[name])
        near = did_you_mean(name, self.names()) or f": known are {', '.join(self.names())}"
        raise PluginError(f"unknown {self.family} plug-in {name!r}{near}")

    def _files(self) -> dict[str, Path]:
        spec = importlib.util.find_spec(self.package)
        folders = list(spec.submodule_search_locations or []) if spec else []
        return {file.stem: file for folder in folders for file in _public(folder)}

    def _entry_points(self) -> Mapping[str, EntryPoint]:
        return _registered(self.group, tuple((folder, _changed(folder or ".")) for folder in sys.path))

    def _import(self, module: str) -> ModuleType:
        try:
            return importlib.import_module(module)
        except VflensError:  # it says itself what is missing: an extra
            raise
        except (Exception, SystemExit) as error:  # a plug-in must not end the process
            if isinstance(error, ModuleNotFoundError) and error.name == "torch":
                raise ConfigError(
                    f"plug-in {module!r} needs torch: install the extra, pip install 'vflens[deep]'"
                ) from None
            raise PluginError(
                f"plug-in {module!r} does not import: {type(error).__name__}: {error}"
            ) from error

    def _base(self) -> type:
        module, _, name = self.base.partition(":")
        base: type = getattr(importlib.import_module(module), name)
        return base

    def _loaded(self, point: EntryPoint) -> type:
        module, _, name = point.value.partition(":")
        loaded = self._import(module)
        if not name:
            return self._one_class(loaded, point.name)
        found = getattr(loaded, name, None)
        if not (inspect.isclass(found) and issubclass(found, self._base())):
            raise PluginError(f"entry point {point.name!r} = {point.value!r} is no subclass of {self.base}")
        return found

    def _one_class(self, module: ModuleType, name: str) -> type:
        base = self._base()
        found = [
            c
            for c in vars(module).values()
            if inspect.isclass(c)
            and issubclass(c, base)
            and c.__module__ == module.__name__
            and not c.__name__.startswith("_")
        ]
        if len(found) != 1:
            names = [c.__name__ for c in found]
            raise PluginError(
                f"plug-in {name!r} must define exactly one public subclass of {self.base}, it defines {names}"
            )
        return found[0]


@lru_cache(maxsize=64)  # reading all packages takes 6 ms, and an audit asks some 300 times
def _registered(group: str, path: tuple[tuple[str, int], ...]) -> Mapping[str, EntryPoint]:
    """The entry points of ``group`` while ``path``, the folders of ``sys.path`` and their times, stays."""
    return {e.name: e for e in entry_points(group=group)}


def _public(folder: str) -> list[Path]:
    """The modules in ``folder`` without a leading underscore, sorted."""
    with os.scandir(folder) as entries:  # a Path for every entry would take as long as a training step
        names = [e.name for e in entries if e.name[0] != "_" and e.name.endswith(".py") and e.is_file()]
    return [Path(folder, name) for name in sorted(names)]


def _changed(folder: str) -> int:
    """When a file of ``folder`` last came or went, in ns; -1: it cannot be read."""
    try:
        return os.stat(folder).st_mtime_ns  # noqa: PTH116 - a Path would take longer than the call
    except OSError:
        return -1


def _unlabelled(name: str) -> str:
    """``name`` without its label."""
    plugin, colon, label = name.partition(":")
    if colon and not re.fullmatch(NAME, label):
        raise ConfigError(f"plug-in {name!r}: after the colon stands a label, {REMEDIES[NAME]}")
    return plugin


ATTACKS = Registry("vflens.attacks", "vflens.attacks", "vflens.plugins.attack:Attack")
DEFENSES = Registry("vflens.defenses", "vflens.defenses", "vflens.plugins.defense:Defense")
MODELS = Registry("vflens.models.families", "vflens.models", "vflens.models.family:ModelFamily")
DATASETS = Registry("vflens.datasets", "vflens.datasets", "vflens.plugins.dataset:Dataset")
