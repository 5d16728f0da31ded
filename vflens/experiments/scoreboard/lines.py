"""Lines of Markdown: lists, names."""

from collections.abc import Iterable
from textwrap import fill


def item(text: str) -> str:
    """An item of a list, broken into lines."""
    return broken(f"- {text}", "  ")


def broken(text: str, indent: str) -> str:
    """``text`` in lines; all but the first have the ``indent``."""
    return fill(text, 118, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def listed(names: Iterable[str]) -> str:
    """Names as code, with commas."""
    return ", ".join(f"`{name}`" for name in names)
