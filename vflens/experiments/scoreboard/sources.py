"""The code that decides a result of the scoreboard: what a plug-in's class reaches in the mathematics.

Most changes of VFLens change no result: ``tests/e2e/test_examples_stay.py`` holds the protocol's bits. So a
result stays valid while the definitions stay that its plug-ins reach. A reached class counts whole, of a
reached module its statements too, and all of a module that is used as a value. Docstrings, comments,
formatting and the types of arguments decide nothing.
"""

import ast
import hashlib
import importlib.util
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

_FOLLOWED = tuple(
    f"vflens.{package}." for package in ("attacks", "defenses", "numerics", "models", "datasets")
)
#: Decorators that keep nothing. What another one decorates may be used without its name: it is a statement.
_PLAIN = {"cache", "contextmanager", "dataclass", "lru_cache", "runtime_checkable"}
_STATEMENTS = ""  # in place of a name: what a module does when it is imported


class _Source(NamedTuple):
    """A module: definitions by name, beside all other statements; name → the paths it is imported from."""

    named: dict[str, list[ast.stmt]]
    imported: dict[str, list[str]]


@cache
def digest(plugin: type, apart: tuple[str, ...] = ()) -> str:
    """A digest of the code that the class ``plugin`` reaches, but for modules ``apart`` and what only they
    reach.
    """
    text = f"{plugin.__module__} {sorted(_reached(plugin, apart).items())}"
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def _reached(plugin: type, apart: tuple[str, ...] = ()) -> dict[tuple[str, str], str]:
    """What decides something of each definition that is reached, by module and name."""
    own = plugin.__module__
    found, left = dict[tuple[str, str], str](), [*_meant(own, plugin.__qualname__, own)]
    while left:
        module, name = left.pop()
        if (module, name) not in found and not module.startswith(apart):
            found[module, name], used = _deciding(module, name)
            left += [other for one in used for other in _meant(module, one, own)]
    return found


@cache
def _deciding(module: str, name: str) -> tuple[str, list[str]]:
    """What decides something of one definition, and the names that it uses."""
    source = _source(module)
    assert source is not None, "a definition has a source"
    node = ast.Module(source.named.get(name, []), [])
    used = sorted({"*", *_names(node)})
    origins = [source.imported.get(one.partition(".")[0]) for one in used]
    return f"{ast.unparse(node)} {origins}", used


@cache
def _meant(module: str, used: str, own: str) -> list[tuple[str, str]]:
    """The definitions that a dotted name means where a module uses it, and the module's statements."""
    source, (head, dot, rest) = _source(module), used.partition(".")
    if source is None:
        return []
    paths = (f"{path}{dot}{rest}" for path in source.imported.get(head, ()))
    found = [(module, name) for name in (_STATEMENTS, head) if name in source.named]
    return found + [one for path in paths for one in _at(path, own)]


def _at(path: str, own: str) -> list[tuple[str, str]]:
    """The same of a ``path`` with its module; none where that is not followed."""
    parts, top = path.split("."), own.partition(".")[0]
    followed = _FOLLOWED if top == "vflens" else (*_FOLLOWED, f"{top}.")  # a plug-in's own package too
    for n in range(len(parts), 0, -1):
        module, rest = ".".join(parts[:n]), ".".join(parts[n:])
        if f"{module}.".startswith(followed) and (source := _source(module)):
            whole = not rest or "__getattr__" in source.named
            return [(module, name) for name in source.named] if whole else _meant(module, rest, own)
    return []


@cache
def _source(module: str) -> _Source | None:
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:  # a class of a module, not a package
        return None
    if not (spec and spec.origin and spec.origin.endswith(".py")):
        return None
    tree, found = ast.parse(Path(spec.origin).read_bytes()), _Source({}, {})
    for name, path in _imported(tree, module if spec.submodule_search_locations else spec.parent or ""):
        found.imported.setdefault(name, []).append(path)
    for node in _Deciding().visit(tree).body:
        name = _STATEMENTS
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            heads = {next(_names(one), "").rpartition(".")[2] for one in node.decorator_list}
            name = node.name if heads <= _PLAIN else _STATEMENTS
        found.named.setdefault(name, []).append(node)
    return found


def _imported(tree: ast.AST, package: str) -> Iterator[tuple[str, str]]:
    """Names of a source's import statements, those inside functions too, and the paths that they mean."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (((one.asname or one.name).partition(".")[0], one.name) for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            for one in node.names:
                yield one.asname or one.name, origin if one.name == "*" else f"{origin}.{one.name}"


class _Deciding(ast.NodeTransformer):
    """Takes out what decides nothing: texts that stand alone, types of arguments, and imports, whose names
    count where they are used.
    """

    def visit(self, node: ast.AST) -> Any:
        """``node`` without it."""
        alone = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if alone or isinstance(node, ast.Import | ast.ImportFrom):
            return None
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef):
            node.returns = None
        return self.generic_visit(node)


def _names(node: ast.AST) -> Iterator[str]:
    """The names in a node, with what is asked of them: "np.linalg.norm"."""
    text = ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""
    if text.replace(".", "").isidentifier():
        yield text
    else:
        yield from (name for child in ast.iter_child_nodes(node) for name in _names(child))
