"""Output of commands: text for people, one JSON document for programs."""

from __future__ import annotations

import contextlib
import json as json_module
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vflens.errors import DataError, printable
from vflens.storage.json_file import finite
from vflens.types import Document

if TYPE_CHECKING:  # width of tables off a terminal
    from rich.table import Table

    from vflens.tables.own_check.flaw import TableCheck

_LAYOUT = "\n\t"  # control characters in our own texts

Json = Annotated[bool, typer.Option("--json", help="print one JSON document instead of text")]

ShowIds = Annotated[
    bool,
    typer.Option(
        "--show-ids", help="a refusal of rows also prints their identifiers and cells: keep it to yourself"
    ),
]


@contextlib.contextmanager
def identified(show_ids: bool) -> Iterator[None]:
    """A refusal of rows ends with their identifiers and cells, or with the flag that shows them."""
    try:
        yield
    except DataError as error:
        if not error.shown:
            raise
        rest = ", ".join(error.shown) if show_ids else "--show-ids prints which"
        raise DataError(f"{error} ({rest})") from error


def emit(json: bool, data: Any, text: Callable[[], str]) -> None:
    """Print ``data`` as JSON or ``text()``; infinite figures become null.

    Control characters in text from a file or another party are escaped: no such text acts as a terminal
    command.
    """
    if json:
        print(_ascii_controls(json_module.dumps(finite(data), ensure_ascii=False)))
        return
    shown = printable(text(), keep=_LAYOUT)
    print(_wrapped(shown) if sys.stdout.isatty() else shown)


def note(message: str) -> None:
    """Print a note on standard error: only results go to standard output."""
    with contextlib.suppress(OSError):  # a full disk or a closed terminal must not end a party
        print(printable(message, keep=_LAYOUT), file=sys.stderr, flush=True)


def note_tables(checks: Mapping[str, TableCheck]) -> Document:
    """Note what is to be mended in each party's own table; the same for ``--json``."""
    for party, check in checks.items():
        for line in check.lines():
            note(f"{party}, {check.file}: {line}")
    return {party: check.record() for party, check in checks.items()}


def plain(*tables: Table | str) -> str:
    """``tables`` and texts as text without colours; cells hold no markup."""
    from rich.console import Console

    console = Console(force_terminal=False, markup=False, highlight=False, emoji=False)
    with console.capture() as shown:
        for table in tables:
            console.print(table)
    return shown.get()


def grids(*tables: Sequence[Sequence[str]]) -> str:
    """Tables, each with its header, for the terminal."""
    from rich.table import Column, Table

    shown = []
    for header, *rows in tables:
        shown.append(Table(*(Column(title, overflow="fold") for title in header)))
        for row in rows:
            shown[-1].add_row(*row)
    return plain(*shown)


def width() -> int:
    """Characters in a line of the terminal; 80 without one."""
    from rich.console import Console

    return Console(force_terminal=False).width


def _wrapped(text: str) -> str:
    """``text`` with its long lines broken between words, where a terminal would break words."""
    most = width()
    lines = (
        textwrap.wrap(line, most, break_long_words=False, break_on_hyphens=False)
        for line in text.splitlines()
    )
    return "\n".join("\n".join(parts) for parts in lines)


def _ascii_controls(document: str) -> str:
    """The JSON ``document`` with unprintable characters escaped."""
    if document.isprintable():
        return document
    return "".join(c if c.isprintable() else json_module.dumps(c)[1:-1] for c in document)
