"""Messages and pages name what ``--help`` shows, or the key of a description: no hidden option."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import typer

from vflens.cli.main import app

ROOT = Path(__file__).parents[3]
SOURCES = sorted(
    file
    for folder in ("attacks", "clients", "coordinator", "defenses", "services", "vflens")
    for file in (ROOT / folder).rglob("*.py")
)
TEMPLATES = sorted((ROOT / "vflens").rglob("*.j2"))
PAGES = [ROOT / "README.md", *(p for p in sorted((ROOT / "docs").rglob("*.md")) if p.name != "history.md")]
_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


@cache
def hidden() -> dict[str, set[str]]:
    """The hidden options of each command; "": those that no command shows."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    found, shown = {}, set()
    for name, command in commands.items():
        options = {option: getattr(p, "hidden", False) for p in command.params for option in p.opts}
        found[name] = {option for option, is_hidden in options.items() if is_hidden}
        shown |= options.keys() - found[name]
    return {**found, "": set().union(*found.values()) - shown}


def named(text: str, place: str = "") -> set[str]:
    """The hidden options in ``text``: of the command that it names, of that which ``place`` belongs to, or of
    whichever command.
    """
    found = {"", *re.findall(r"vflens ([a-z-]+)", text), *re.split(r"\W|_", place)}
    return set(_FLAG.findall(text)) & set().union(*(hidden().get(command, set()) for command in found))


def texts(file: Path) -> Iterator[str]:
    """The texts of a source that somebody may read: no docstring, no declaration of an option."""
    tree = ast.parse(file.read_text("utf-8"))
    declared = {
        id(inner)
        for node in ast.walk(tree)
        if (isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Option"))
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in declared:
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)


def test_options_are_hidden() -> None:
    assert {"--models", "--most-leak", "--excel-safe"} <= hidden()[""]
    assert all(
        (named("raise --models"), named("vflens audit --seed"), named("--most-loss 5", "audit/advice"))
    )
    assert not named("vflens release --seed --columns")


def _makes_a_name(text: str, place: str) -> bool:
    """Whether ``text`` makes the name of an option of a value, in a place of a command that hides some."""
    return "--{" in text and any(hidden().get(part) for part in re.split(r"\W|_", place) if part)


def test_no_message_names_a_hidden_option() -> None:
    places = {file: str(file.relative_to(ROOT).with_suffix("")) for file in [*SOURCES, *TEMPLATES]}
    found = [
        (place, text)
        for file, place in places.items()
        for text in (texts(file) if file.suffix == ".py" else [file.read_text("utf-8")])
        if named(text, place) or _makes_a_name(text, place)
    ]
    assert len(places) > 400
    assert found == []


def test_no_page_names_a_hidden_option() -> None:
    places = {page: page.stem if page.parent.name == "docs" else "" for page in PAGES}
    lines = [(page, line) for page in PAGES for line in page.read_text("utf-8").splitlines()]
    assert len(lines) > 1000
    assert [(page, line) for page, line in lines if named(line, places[page])] == []
