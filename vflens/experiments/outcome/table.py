"""The one table of what attacks found: which columns there are, and rows of findings as Arrow, CSV and JSON.

A view is some of these columns: of ``--table``, of ``sweep.parquet``, of ``vl.results``, and of the keys that
``--json`` has for one release beside ``findings``.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from vflens.errors import ConfigError
from vflens.experiments.outcome.finding import OVERALL, Finding, Findings, Quantity
from vflens.experiments.outcome.words import subject
from vflens.numerics.measures.intervals import over_blind
from vflens.storage.arrow import strings
from vflens.storage.files import write_whole
from vflens.types import Document, Facts

if TYPE_CHECKING:
    import pyarrow as pa

Pairs: TypeAlias = Mapping[tuple[Any, ...], tuple[float, float]]  # of what → a figure, a blind guess's
#: What is scored as a whole → the column of its figure, in a sweep's rows and in a score.
FIGURES: Mapping[Quantity, str] = {
    Quantity.LABELS: "label_accuracy",
    Quantity.MEMBERS: "membership_auc",
    Quantity.SITES: "source_right",
    Quantity.ALL: "mse",
}
_TEXTS = (
    *("folder", "run", "defenses", "scenario", "client", "where"),
    *("attack", "target", "scored_set", "subject", "column", "measure"),
)
#: Columns of ``--table``.
COLUMNS = (
    *("where", "attack", "subject", "rows", "column", "measure", "value", "low", "high"),
    *("blind", "imputation", "tolerance"),
)
#: Columns of ``vl.results`` after those that say which run it is.
RESULTS = (*("attack", "target", "scored_set", "rows", "mse", "blind", "relative", "psnr", "ssim", "better"),)


def arrow(rows: Sequence[Facts], columns: Sequence[str]) -> pa.Table:
    """``rows`` with ``columns``, in this order: texts, counts, truth values, else float64."""
    import pyarrow as pa

    kinds = {**dict.fromkeys(_TEXTS, pa.string()), "rows": pa.int64(), "better": pa.bool_()}
    schema = pa.schema([(name, kinds.get(name, pa.float64())) for name in columns])
    return pa.Table.from_pylist(rows, schema=schema)


def where(rows: Iterable[Document], /, **equal: object) -> list[Document]:
    """The ``rows`` of which these columns are ``equal`` to that."""
    return [row for row in rows if all(row[name] == value for name, value in equal.items())]


def with_figures(rows: Iterable[Document]) -> list[Document]:
    """The ``rows`` that were not refused."""
    return [row for row in rows if not row.get("refused")]


def without_figures(rows: Iterable[Document]) -> list[Document]:
    """The others: each says why."""
    return [row for row in rows if row.get("refused")]


def long_rows(evidence: Sequence[Findings]) -> Iterator[Document]:
    """A row for each attack and column: the share found within its tolerance; and for each attack: its error,
    or its share of right answers. With the ends of the 95 % interval, None where nobody has one.
    """
    for e in evidence:
        for f in e.only(Quantity.WITHIN, *OVERALL):
            column = f.subject if f.quantity is Quantity.WITHIN else ""
            measure = "found" if column else "right" if f.is_share else "mse"
            own = {"where": e.where, "subject": subject(f), "column": column, "measure": measure}
            yield {name: own[name] if name in own else getattr(f, name) for name in COLUMNS}


def overall(f: Finding, adversary: str = "", **beside: Any) -> Document:
    """The row of a sweep that ``f`` gives; ``beside`` stands after its figure."""
    error, blind = f.errors
    place = {"attack": f.attack, **({"adversary": adversary} if adversary else {}), "target": f.target}
    figure = {"scored_set": f.scored_set, "rows": f.rows, FIGURES[f.quantity]: f.value}
    return {**place, **figure, **beside, "blind": f.blind, "relative": over_blind(error, blind)}


def quantity_of(row: Facts) -> Quantity:
    """What :func:`overall`'s ``row`` is of."""
    had = (quantity for quantity, name in FIGURES.items() if row.get(name) is not None)
    return next(had, Quantity.ALL)


def errors_of(row: Facts) -> tuple[float, float]:
    """The error of such a ``row`` and of its blind guess, of one unit: MSE, a share of wrong answers, or
    1 − AUC.
    """
    quantity = quantity_of(row)
    value, blind = row[FIGURES[quantity]], row["blind"]
    return (value, blind) if quantity is Quantity.ALL else (1 - value, 1 - blind)


def own_unit(f: Finding) -> Document:
    """A column under the keys of version 0.2, as :func:`mean`: ``findings`` has all."""
    place = {"target": f.target, "attack": f.attack, "column": f.subject}
    return {**place, "error": f.value, "blind": f.blind, "right": f.is_share}


def mean(f: Finding) -> Document:
    """A column's mean."""
    place = {"attack": f.attack, "target": f.target, "scored_set": f.scored_set, "rows": f.rows}
    return {**place, "column": f.subject, "error": f.value, "blind": f.blind}


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

    texts = [name for name in COLUMNS if name in _TEXTS]
    shown = {name: as_shown(strings([row[name] for row in rows])).to_pylist() for name in texts}
    text = StringIO()
    writer = csv.DictWriter(text, COLUMNS)  # its line ends, so that a carriage return in a name is quoted
    writer.writeheader()
    cells = [{name: of[i] for name, of in shown.items()} for i in range(len(rows))]
    writer.writerows({**row, **own} for row, own in zip(rows, cells, strict=True))
    return text.getvalue().encode()


def _parquet(rows: Sequence[Facts]) -> bytes:
    import pyarrow.parquet as pq

    written = BytesIO()
    pq.write_table(arrow(rows, COLUMNS), written)
    return written.getvalue()


_WRITERS: dict[str, Callable[[Sequence[Facts]], bytes]] = {".csv": _csv, ".parquet": _parquet}


def differences(one: Pairs, other: Pairs, names: Sequence[str]) -> Iterator[Document]:
    """Which figures differ: ``names`` of what they are of, both, b − a, and those of blind guesses; None for
    one that a side lacks.
    """
    for key in dict.fromkeys([*one, *other]):
        (a, blind_a), (b, blind_b) = (side.get(key, (None, None)) for side in (one, other))
        if a != b:
            place = dict(zip(names, key, strict=True))
            yield {**place, **sides(a, b), "blind_a": blind_a, "blind_b": blind_b}


def sides(a: float | None, b: float | None) -> dict[str, float | None]:
    """Both figures and b − a, None if one is missing."""
    return {"a": a, "b": b, "difference": None if a is None or b is None else b - a}
