"""Tables and paragraphs of Markdown."""

from collections.abc import Sequence

from vflens.experiments.scoreboard.lines import broken


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with blank lines around it."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def paragraph(text: str) -> str:
    """A paragraph, broken into lines, and a blank line after it."""
    return f"{broken(text, '')}\n"
