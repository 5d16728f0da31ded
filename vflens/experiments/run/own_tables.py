"""The check of parties' own files before they are used: *your table first*."""

import shlex
from collections.abc import Mapping
from pathlib import Path

from vflens.errors import ConfigError, DataError
from vflens.storage.files import write_whole
from vflens.tables.cells import SUFFIXES
from vflens.tables.description import PartyFile
from vflens.tables.files import check_party_table
from vflens.tables.own_check.flaw import TableCheck
from vflens.tables.own_check.writer import as_toml, draft, to_decide
from vflens.types import Document
from vflens.words import counted

_MANY = 1000  # rows: enough for the defaults of an audit


def check_tables(files: Mapping[str, PartyFile]) -> dict[str, TableCheck]:
    """The check of each of ``files``, without folders of images.

    Raises:
        DataError: one is no table, or lacks a column.
    """
    found = {party: check_party_table(spec) for party, spec in files.items()}
    return {party: check for party, check in found.items() if check is not None}


def is_own_table(file: Path) -> bool:
    """Whether ``file`` is a table, and no configuration."""
    return file.name.endswith(tuple(SUFFIXES))


def few_rows(rows: int) -> str:
    """What an audit of so many ``rows`` needs beside its defaults, in words; "" of enough."""
    if rows >= _MANY:  # the modules below take as long to load as a small table to read
        return ""
    from vflens.experiments.audit.bench import Plan
    from vflens.experiments.audit.subject import FEWEST_ROWS

    if rows >= Plan.known + 2:
        return ""
    if rows < FEWEST_ROWS:
        return f"an audit needs {FEWEST_ROWS} rows at least, this table has {rows}"
    return (
        f"an audit of {counted(rows, 'row')} needs known = {rows // 2} in [audit] of its description, "
        f"{rows - 2} at most"
    )


def describe(table: Path, to: Path | None) -> Document:
    """Write the description that makes ``table`` fit to ``to``; how many ``rows`` and ``columns`` it has,
    which are ``left_out``, what is to ``decide``, and ``lines`` for people.

    Raises:
        ConfigError: ``table`` is none, or ``to`` is there.
        DataError: it cannot be read.
        StorageError: ``to`` cannot be written.
    """
    if not is_own_table(table):
        raise ConfigError(f"{table} with --write: give a table, {', '.join(SUFFIXES)}")
    if to is not None and to.exists():
        raise ConfigError(f"{to} exists: choose another name, or remove it")
    try:
        found = draft(table)
    except DataError as error:
        raise error if table.name in str(error) else DataError(f"{table.name}: {error}") from None
    decide, kept = to_decide(found), len(found.columns)
    columns = counted(kept + len(found.left), "column")
    lines = [f"{table.name}: {counted(found.rows, 'row', ',')}, {kept} of {columns} fit"]
    lines += [f"decide: {words}" for words in decide]
    if to is not None:
        write_whole(to, as_toml(found, to.resolve().parent).encode(), remedy="choose another folder")
    if to is None:
        lines.append(f"vflens check {shlex.quote(str(table))} --write own.toml writes its description")
    else:
        lines.append(
            f"{to} describes it: decide there what it asks, then vflens audit {shlex.quote(str(to))}"
        )
    lines += [few] if (few := few_rows(found.rows)) else []
    counts = {"rows": found.rows, "columns": found.columns, "left_out": found.left}
    return {**counts, "decide": decide, "written": None if to is None else str(to), "lines": lines}
