"""Sentences say "1 row": each number beside its noun goes through :func:`vflens.words.counted`."""

import ast
import re
from pathlib import Path

import pytest

from vflens.words import counted

ROOT = Path(__file__).parents[3]
ROOMS = ("attacks", "clients", "coordinator", "defenses", "services", "vflens")
FILES = sorted(file for room in ROOMS for file in (ROOT / room).rglob("*.py"))
_NOUNS = re.compile(
    " (?:(?:training|prediction|passive|unknown|other) )?"
    r"(?:rows|columns|parties|clients|classes|seeds|steps|rounds|epochs|features|numbers|records)\b"
)
_CONSTANT = re.compile("_?[A-Z][A-Z_]+")  # never 1
#: Values that are words or lists, no number.
_NO_NUMBER = {
    "counts",
    "kind",
    "lengths",
    "name",
    "other",
    "part",
    "scored_set",
    "shown",
    "sorted",
    "value",
    "what",
}


def _said(value: ast.expr) -> str:
    """The last name in ``value``: of an attribute, a function that is called, a variable."""
    match value:
        case ast.Call():
            return _said(value.func)
        case ast.Attribute():
            return value.attr
        case ast.Name():
            return value.id
    return ""


def _bare_counts(tree: ast.AST) -> list[str]:
    """Each value in a formatted text that stands before a noun in the plural."""
    return [
        f"{value.lineno}: {ast.unparse(value.value)}{after.value!r}"
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for value, after in zip(node.values, node.values[1:], strict=False)
        if isinstance(value, ast.FormattedValue) and isinstance(after, ast.Constant)
        if _NOUNS.match(str(after.value)) and not _CONSTANT.fullmatch(text := _said(value.value))
        if text not in _NO_NUMBER
    ]


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("f'{n} rows'", 1),
        ("f'{len(x):,} training rows'", 1),
        ("f'{n} ' 'classes'", 1),
        ("f'{counted(n, \"row\")}'", 0),
        ("f'{act.scored_set} rows'", 0),
        ("f'{MOST} clients'", 0),
        ("f'{n} rowspan'", 0),
    ],
)
def test_a_bare_count_is_seen(written: str, found: int) -> None:
    assert len(_bare_counts(ast.parse(written))) == found


def test_no_sentence_says_1_rows() -> None:
    bare = {str(f): found for f in FILES if (found := _bare_counts(ast.parse(f.read_text(encoding="utf-8"))))}
    assert len(FILES) > 500
    assert bare == {}, "say counted(n, 'row')"


@pytest.mark.parametrize(
    ("text", "due"),
    [
        (counted(1, "row"), "1 row"),
        (counted(0, "row"), "0 rows"),
        (counted(2, "class"), "2 classes"),
        (counted(3, "passive party"), "3 passive parties"),
        (counted(5, "day"), "5 days"),
        (counted(12345, "byte", ","), "12,345 bytes"),
        (counted(1.2, "second", ".0f"), "1 second"),
        (counted(1, "record has", many="records have"), "1 record has"),
        (counted(2, "record has", many="records have"), "2 records have"),
    ],
)
def test_a_noun_agrees_with_its_number(text: str, due: str) -> None:
    assert text == due
