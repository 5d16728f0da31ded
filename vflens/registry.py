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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType

from vflens.errors import ConfigError, PluginError, VflensError, install_extra
from vflens.names import NAME, REMEDIES, did_you_mean

_MODULE = re.compile(r"[a-z][a-z0-9_]{0,63}")
_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_IMPORTS = re.compile(r"^(?:from ([\w.]+) )?import (\([^)]*\)|.*)", re.MULTILINE)
_IMPORTED = re.compile(r"(?:^|[(,])\s*([\w.]+)")
_HERE = Path(__file__).parent
_SINCE = re.compile(r'^    since: ClassVar\[str\] = "(.+)"', re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")


@dataclass(frozen=True)
class Registry:
    """The plug-ins of one family: ``package`` is scanned, then the entry points of ``group``."""

    package: str
    group: str
    base: str  # "module:Class", imported only by get()
    _given: dict[str, type] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def family(self) -> str:
        """What messages call it: "attacks", "defenses", "models", "datasets"."""
        return self.group.rpartition(".")[2]

    def names(self) -> list[str]:
        """All names, sorted; imports nothing."""
        return sorted({*self._files(), *self._entry_points(), *self._given})

    def without(self, package: str) -> list[str]:
        """All names but our own that import ``package``, also by modules of ours; imports nothing."""
        ours = {name for name in self._files() if _needs(f"{self.package}.{name}", package)}
        return [name for name in self.names() if name not in ours or name in self._given]

    @property
    def given(self) -> Mapping[str, type]:
        """The classes that are plug-ins until a block ends, by name."""
        return self._given

    @contextmanager
    def entered(self, kind: type) -> Iterator[str]:
        """The name of the class ``kind``, as "half_star" of ``HalfStar``: a plug-in of this process until the
        end.

        Raises:
            PluginError: it is no public subclass of the base, or leaves out what that asks for.
            ConfigError: its name is no module's, or another plug-in's.
        """
        is_one = inspect.isclass(kind) and issubclass(kind, self._base())
        if not is_one or kind.__name__.startswith("_"):
            raise PluginError(f"{kind!r} is no public subclass of {self.base}: derive a class from it")
        name = _WORD_STARTS.sub("_", kind.__name__).lower()
        if name in self.names() and self.get(name) is kind:
            yield name
            return
        self._check_new(name, f"class {kind.__name__}: rename the class")
        with self._as(name, self._whole(kind, name)):
            yield name

    @contextmanager
    def entered_file(self, file: Path) -> Iterator[str]:
        """The name of the plug-in in ``file``, its stem: it is one of this process until the end.

        Raises:
            ConfigError: there is no such file, or its name is no module's or a plug-in's.
            PluginError: it does not import, or has not exactly one public subclass of the base, or that
                leaves out what the base asks for.
        """
        if not file.is_file() or file.suffix != ".py":
            raise ConfigError(f"{file} is no Python file: give one plug-in as `vflens new` makes it")
        name, module = file.stem, f"{self.package}.{file.stem}"
        self._check_new(name, f"{file}: rename the file")
        try:
            kind = self._one_class(self._import(module, lambda named: _module_of(named, file)), name)
            with self._as(name, kind):
                yield name
        finally:
            sys.modules.pop(module, None)

    @contextmanager
    def _as(self, name: str, kind: type) -> Iterator[None]:
        self._given[name] = kind
        try:
            yield
        finally:
            del self._given[name]

    def _check_new(self, name: str, refusal: str) -> None:
        if not _MODULE.fullmatch(name):
            raise ConfigError(
                f"{refusal}, {name!r} is not of lower case letters, digits and '_', as a module"
            )
        if name in self.names():
            raise ConfigError(f"{refusal}, {name!r} is one of the installed {self.family}")

    def summary(self, name: str) -> str:
        """The first paragraph of the plug-in's file; of an entry point the first sentence of its class, in
        words that there is none, or why it cannot be read. "" for an unknown name. Nothing is imported.
        """
        name = _unlabelled(name)
        if name in self._given:
            return _paragraph(self._given[name].__doc__)
        file, point = self._files().get(name), self._entry_points().get(name)
        if file is not None:
            return _read(file, lambda module: _paragraph(ast.get_docstring(module)))
        return "" if point is None else _described(point)

    def since(self, name: str) -> str:
        """The release in which our plug-in ``name`` is new, "" of others; nothing is imported."""
        file = self._files().get(_unlabelled(name))
        found = file and _SINCE.search(file.read_text(encoding="utf-8", errors="replace"))
        return found[1] if found else ""

    def get(self, name: str) -> type:
        """The class of plug-in ``name``, which may carry a label.

        Raises:
            PluginError: unknown name, one that a file and an entry point share, failing import, or not
                exactly one public subclass of the base, with all that this asks for.
            ConfigError: it needs an extra that is not installed, or the label is no name.
        """
        name = _unlabelled(name)
        if name in self._given:
            return self._given[name]
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
        raise self._unknown(name)

    def _unknown(self, name: str) -> PluginError:
        near = did_you_mean(name, self.names()) or f": known are {', '.join(self.names())}"
        return PluginError(f"unknown {self.family} plug-in {name!r}{near}")

    def _files(self) -> Mapping[str, Path]:
        spec = importlib.util.find_spec(self.package)
        folders = list(spec.submodule_search_locations or []) if spec else []
        return {name: file for folder in folders for name, file in _public(folder, _changed(folder)).items()}

    def _entry_points(self) -> Mapping[str, EntryPoint]:
        return _registered(self.group, tuple((folder, _changed(folder or ".")) for folder in sys.path))

    def _import(self, module: str, load: Callable[[str], ModuleType] = importlib.import_module) -> ModuleType:
        try:
            return load(module)
        except VflensError:  # it says itself what is missing: an extra
            raise
        except (Exception, SystemExit) as error:  # a plug-in must not end the process
            if isinstance(error, ModuleNotFoundError) and error.name == "torch":
                raise ConfigError(f"plug-in {module!r} needs torch: {install_extra('deep')}") from None
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
        return self._whole(found, point.name)

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
        return self._whole(found[0], name)

    def _whole(self, kind: type, name: str) -> type:
        left = [n for n in getattr(self._base(), "__class_vars__", ()) if not hasattr(kind, n)]
        if missing := sorted({*left, *getattr(kind, "__abstractmethods__", ())}):
            raise PluginError(
                f"plug-in {name!r} does not define {' and '.join(missing)} of {self.base}: add it"
            )
        return kind


@lru_cache(maxsize=64)  # reading all packages takes 6 ms, and an audit asks some 300 times
def _registered(group: str, path: tuple[tuple[str, int], ...]) -> Mapping[str, EntryPoint]:
    """The entry points of ``group`` while ``path``, the folders of ``sys.path`` and their times, stays."""
    return {e.name: e for e in entry_points(group=group)}


@lru_cache(maxsize=64)  # reading a folder takes 0.3 ms, and a report with many columns asks 80,000 times
def _public(folder: str, changed: int) -> Mapping[str, Path]:
    """Name → file of the modules in ``folder`` without a leading underscore, sorted, while the time that it
    ``changed`` stays.
    """
    with os.scandir(folder) as entries:
        names = [e.name for e in entries if e.name[0] != "_" and e.name.endswith(".py") and e.is_file()]
    return {name.removesuffix(".py"): Path(folder, name) for name in sorted(names)}


def _changed(folder: str) -> int:
    """When a file of ``folder`` last came or went, in ns; -1: it cannot be read."""
    try:
        return os.stat(folder).st_mtime_ns  # noqa: PTH116 - a Path would take longer than the call
    except OSError:
        return -1


def _module_of(name: str, file: Path) -> ModuleType:
    """The module ``name`` from ``file``; its folder may hold other files, which are no part of it."""
    spec = importlib.util.spec_from_file_location(name, file.resolve())
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)  # pydantic looks for it there
    spec.loader.exec_module(module)
    return module


def _described(point: EntryPoint) -> str:
    """The first sentence of the docstring of the class that ``point`` names; where it names a module, of the
    module's only public class, else of the module.
    """
    module, _, name = point.value.partition(":")
    file = _source(module)
    if file is None:
        return f"no description: the source of {module} is not there"
    found = _read(file, lambda tree: _class_words(tree, name))
    return _SENTENCE_END.split(found, maxsplit=1)[0] or "no description: its class has no docstring"


def _source(module: str) -> Path | None:
    """The file of ``module``; it is found without importing the packages that it lies in."""
    top, *inner = module.split(".")
    spec = importlib.util.find_spec(top)
    for part in inner:
        if spec is None:
            return None
        spec = PathFinder.find_spec(f"{spec.name}.{part}", spec.submodule_search_locations)
    return Path(spec.origin) if spec and spec.has_location and spec.origin else None


@cache  # files of this installation: they stay
def _needs(module: str, package: str) -> bool:
    """Whether ``module``, or a module of ours that it imports, imports ``package`` at its margin."""
    seen, left = {module}, [module]
    while left:
        named = _imported(left.pop())
        if any(other.partition(".")[0] == package for other in named):
            return True
        left += named - seen
        seen |= named
    return False


@cache
def _imported(module: str) -> frozenset[str]:
    """What a ``module`` of ours imports at its margin, by name; nothing of others'."""
    top, *inner = module.split(".")
    file = _HERE.joinpath(*inner).with_suffix(".py")
    if top != _HERE.name or not file.is_file():
        return frozenset()
    found = set[str]()
    for of, names in _IMPORTS.findall(re.sub("#.*", "", file.read_text(encoding="utf-8"))):
        parts = _IMPORTED.findall(names)
        found |= {of, *(f"{of}.{part}" for part in parts)} if of else set(parts)
    return frozenset(found)


def _class_words(tree: ast.Module, name: str) -> str:
    """The first paragraph of the class ``name``, "": of the only public one, else of the module."""
    classes = [c for c in tree.body if isinstance(c, ast.ClassDef)]
    meant = [c for c in classes if c.name == name or not (name or c.name.startswith("_"))]
    own = ast.get_docstring(meant[0]) if len(meant) == 1 else None
    return _paragraph(own or (None if name else ast.get_docstring(tree)))


def _read(file: Path, words: Callable[[ast.Module], str]) -> str:
    """``words`` of the code in ``file``, or why it cannot be read."""
    try:
        return words(ast.parse(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, SyntaxError) as error:
        return f"cannot be read ({type(error).__name__}): mend {file.name}"


def _paragraph(text: str | None) -> str:
    return " ".join((text or "").split("\n\n", 1)[0].split())


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
