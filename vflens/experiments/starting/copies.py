"""Copies of the examples, and packages of one plug-in made from two of them."""

import ast
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EEXIST, ENOTDIR, ENOTEMPTY
from importlib.util import find_spec
from itertools import takewhile
from keyword import iskeyword
from pathlib import Path
from tempfile import mkdtemp

from vflens.errors import ConfigError, StorageError
from vflens.registry import ATTACKS, DEFENSES, Registry

EXAMPLES = Path(__file__).parents[2] / "examples"
OWN_CSV = ("own_csv.toml", "bank_active.csv", "bank_passive.csv")
#: Kind of plug-in → its registry, and the example whose copy a new one is.
KINDS: dict[str, tuple[Registry, str]] = {
    "attack": (ATTACKS, "clamped_half_star"),
    "defence": (DEFENSES, "top_scores"),
}
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_LEFT = shutil.ignore_patterns("__pycache__", ".*")


def experiments() -> dict[str, str]:
    """The experiments and configurations among the examples, each with the first sentence of its comment."""
    return {file.name: _first_sentence(file) for file in sorted(EXAMPLES.glob("*.toml"))}


def copy_examples(to: Path) -> list[Path]:
    """Copy all examples into the folder ``to``, which is not there yet; that folder.

    Raises:
        ConfigError: ``to`` is there already.
        StorageError: it cannot be written.
    """
    with _new(to) as folder:
        shutil.copytree(EXAMPLES, folder, ignore=_LEFT, dirs_exist_ok=True)
    return [to]


def copy_own_csv(to: Path) -> list[Path]:
    """Copy the experiment on two CSV files into the folder ``to``, which is not there yet; its files.

    Raises:
        ConfigError: ``to`` is there already.
        StorageError: it cannot be written.
    """
    with _new(to) as folder:
        for name in OWN_CSV:
            shutil.copy(EXAMPLES / name, folder)
    return sorted(to.iterdir())


def copy_plugin(kind: str, name: str, to: Path) -> list[Path]:
    """Write a package with one plug-in ``name`` into the folder ``to``, which is not there yet; its files.

    Args:
        kind: "attack" or "defence".
        name: lower case, as a module of Python; no installed plug-in has it.
        to: the folder of the package.

    Raises:
        ConfigError: the name is none, or taken, or ``to`` is there already.
        StorageError: it cannot be written.
    """
    registry, example = KINDS[kind]
    _check_name(name, kind, registry)
    with _new(to) as folder:
        for file in (EXAMPLES / f"new_{kind}").glob("*.*"):
            text = file.read_text(encoding="utf-8")
            renamed = text.replace(example, name).replace(_class(example), _class(name))
            (folder / file.name.replace(example, name)).write_text(renamed, encoding="utf-8")
    return sorted(to.iterdir())


def _class(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def _check_name(name: str, kind: str, registry: Registry) -> None:
    if not _NAME.fullmatch(name) or iskeyword(name):
        raise ConfigError(
            f"name {name!r} of a new {kind}: give 1 to 64 lower-case letters, digits or '_', a letter first, "
            "and no word of Python's"
        )
    code = "\n".join(file.read_text("utf-8") for file in (EXAMPLES / f"new_{kind}").glob("*.py"))
    used = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
    taken = {
        "an installed one has it": name in registry.names(),
        "a module of Python has it": find_spec(name) is not None,
        f"its package uses {_class(name)!r}": _class(name) in used - {_class(KINDS[kind][1])},
    }
    if why := next((why for why, is_so in taken.items() if is_so), None):
        raise ConfigError(f"name {name!r} of a new {kind}: {why}, choose another")


@contextmanager
def _new(to: Path) -> Iterator[Path]:
    """A folder beside ``to``, which becomes ``to`` once the block has ended well; else it goes.

    Raises:
        ConfigError: ``to`` is there already.
        StorageError: it cannot be written.
    """
    there = ConfigError(f"{to} is there already: choose another folder, or move it away")
    if to.exists() or to.is_symlink():
        raise there
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        made = Path(mkdtemp(dir=to.parent, prefix=f".{to.name[:20]}-"))
        try:
            yield made
            made.chmod(0o755)
            made.rename(to)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    except OSError as error:  # that of shutil names no file
        if error.errno in (ENOTEMPTY, EEXIST, ENOTDIR) and to.exists():
            raise there from None  # another command wrote it meanwhile
        raise StorageError(
            f"{to} cannot be written: free space, or choose a folder that you can write"
        ) from error


def _first_sentence(file: Path) -> str:
    """The first sentence of the comment with which ``file`` begins."""
    lines = takewhile(lambda line: line.startswith("# "), file.read_text(encoding="utf-8").splitlines())
    return re.split(r"(?<=\.)\s", " ".join(line[2:] for line in lines))[0]
