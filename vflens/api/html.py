"""Pieces of HTML with which results show themselves in a notebook; every text is escaped."""

from collections.abc import Iterable, Sequence
from html import escape


def paragraphs(*texts: str) -> str:
    """One paragraph for each text; empty ones are left out."""
    return "".join(f"<p>{escape(text)}</p>" for text in texts if text)


def table(
    header: Sequence[str], rows: Iterable[Sequence[str]], shades: Sequence[Sequence[float]] = ()
) -> str:
    """A table; ``shades``, a number from 0 (white) to 1 (red) for each cell, make it a heat map."""
    head = "".join(f"<th>{escape(title)}</th>" for title in header)
    body = []
    for i, row in enumerate(rows):
        cells = (
            f"<td{_style(shades[i][j] if shades else 0.0)}>{escape(cell)}</td>" for j, cell in enumerate(row)
        )
        body.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def _style(shade: float) -> str:
    return f' style="background: rgba(200, 60, 40, {0.6 * shade:.2f})"' if shade else ""
