"""What attacks found as one long table, CSV or Parquet, and two audits beside each other."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from vflens.errors import ConfigError
from vflens.experiments.audit.record import read_audit
from vflens.experiments.evidence.sources import of_audit
from vflens.experiments.outcome.finding import OVERALL, Findings, Quantity
from vflens.experiments.outcome.words import number, subject
from vflens.storage.arrow import strings
from vflens.storage.files import write_whole
from vflens.types import Document, Facts

if TYPE_CHECKING:
    from rich.table import Table

#: Columns of the table and what they are.
COLUMNS = (
    *("where", "attack", "subject", "rows", "column", "measure", "value", "low", "high"),
    *("blind", "imputation", "tolerance"),
)
_TEXTS = {"where", "attack", "subject", "column", "measure"}
_KEY = ("attack", "subject", "column", "measure")


def long_rows(evidence: Sequence[Findings]) -> Iterator[Document]:
    """A row for each attack and column: the share found within its tolerance; and for each attack: its error,
    or its share of right answers. With the ends of the 95 % interval, None where nobody has one.
    """
    for e in evidence:
        for f in e.only(Quantity.WITHIN, *OVERALL):
            column = f.subject if f.quantity is Quantity.WITHIN else ""
            measure = "found" if column else "right" if f.is_share else "mse"
            yield {
                **{"where": e.where, "attack": f.attack, "subject": subject(f), "rows": f.rows},
                **{"column": column, "measure": measure, "value": f.value, "low": f.low, "high": f.high},
                **{"blind": f.blind, "imputation": f.imputation, "tolerance": f.tolerance},
            }


def check_table(file: Path | None) -> None:
    """Refuse a file that is no table by its name, before the work.

    Raises:
        ConfigError: it ends neither in .csv nor in .parquet.
    """
    if file is not None and file.suffix not in _WRITERS:
        raise ConfigError(f"--table {file}: give a name that ends in .csv or .parquet")


def write_table(file: Path, evidence: Sequence[Findings]) -> None:
    """Write :func:`long_rows` to ``file``, by its name as CSV or Parquet.

    Raises:
        ConfigError: it is neither.
        StorageError: it cannot be written.
    """
    check_table(file)
    write_whole(file, _WRITERS[file.suffix](list(long_rows(evidence))), remedy="another --table")


def _csv(rows: Sequence[Facts]) -> bytes:
    """Names are those that others chose: a spreadsheet shows them, and runs none."""
    from vflens.storage.arrow import as_shown

    shown = {name: as_shown(strings([row[name] for row in rows])).to_pylist() for name in _TEXTS}
    text = StringIO()
    writer = csv.DictWriter(text, COLUMNS)  # its line ends, so that a carriage return in a name is quoted
    writer.writeheader()
    cells = [{name: texts[i] for name, texts in shown.items()} for i in range(len(rows))]
    writer.writerows({**row, **own} for row, own in zip(rows, cells, strict=True))
    return text.getvalue().encode()


def _parquet(rows: Sequence[Facts]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {name: pa.string() if name in _TEXTS else pa.float64() for name in COLUMNS} | {"rows": pa.int64()}
    written = BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=pa.schema(list(kinds.items()))), written)
    return written.getvalue()


_WRITERS: dict[str, Callable[[Sequence[Facts]], bytes]] = {".csv": _csv, ".parquet": _parquet}


def compare_audits(a: Path, b: Path) -> Document:
    """The differences between two documents of ``vflens audit --json``.

    Returns:
        ``a``, ``b``: their subjects. ``differences``: ``{attack, subject, column, measure, a, b, blind_a,
        blind_b, difference}``, None for a figure that a side lacks; equal figures are left out. ``equal``.

    Raises:
        DataError: one is no such document.
    """
    (name_a, one), (name_b, other) = _audited(a), _audited(b)
    found = []
    for key in dict.fromkeys([*one, *other]):
        mine, theirs = one.get(key, {}), other.get(key, {})
        a_value, b_value = mine.get("value"), theirs.get("value")
        if a_value != b_value:
            blind = {"blind_a": mine.get("blind"), "blind_b": theirs.get("blind")}
            difference = None if a_value is None or b_value is None else b_value - a_value
            sides = {"a": a_value, "b": b_value, **blind, "difference": difference}
            found.append({**dict(zip(_KEY, key, strict=True)), **sides})
    return {"a": name_a, "b": name_b, "differences": found, "equal": not found}


def _audited(file: Path) -> tuple[str, dict[tuple[str, ...], Document]]:
    """The subject of an audit, and its figures by what they are of.

    Raises:
        DataError: ``file`` is none.
    """
    record = read_audit(file)
    rows = long_rows([of_audit(replace(record, subject="your table"))])
    return record.subject, {tuple(row[k] for k in _KEY): row for row in rows}


def compared(facts: Facts) -> Table:
    """The result of :func:`compare_audits` for the terminal, without markup."""
    from rich.table import Table

    grid = Table("what differs", f"a: {facts['a']}", f"b: {facts['b']}", "b − a")
    for d in facts["differences"]:
        what = (
            f"{d['measure']} by {d['attack']}{' of ' + d['column'] if d['column'] else ''} ({d['subject']})"
        )
        sides = (f"{number(d[s])} (blind {number(d[f'blind_{s}'])})" for s in "ab")
        grid.add_row(what, *sides, number(d["difference"]))
    grid.caption = "Equal: no figure differs." if facts["equal"] else None
    return grid
