"""Lines of Markdown: tables, lists, names."""

from collections.abc import Iterable, Sequence
from textwrap import fill


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with blank lines around it."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def paragraph(text: str) -> str:
    """A paragraph, broken into lines, and a blank line after it."""
    return f"{_broken(text, '')}\n"


def item(text: str) -> str:
    """An item of a list, broken into lines."""
    return _broken(f"- {text}", "  ")


def _broken(text: str, indent: str) -> str:
    return fill(text, 118, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def listed(names: Iterable[str]) -> str:
    """Names as code, with commas."""
    return ", ".join(f"`{name}`" for name in names)
