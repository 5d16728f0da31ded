"""``vflens audit``: what your own columns would reveal, before any training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from vflens.cli.output import Json, ShowIds, emit, identified, note_tables, plain
from vflens.errors import ConfigError
from vflens.types import Document

if TYPE_CHECKING:
    from vflens.experiments.audit.bench import Plan
    from vflens.experiments.audit.given import Source as Asked
    from vflens.experiments.audit.subject import AuditSubject
    from vflens.experiments.weights.network import Graph
    from vflens.experiments.weights.xgboost import TreeModel

Source = Annotated[
    str,
    typer.Argument(
        help="your .csv or .parquet, a .toml that describes it, a data set's name, or your run folder"
    ),
]
Classes = Annotated[int | None, typer.Option(min=2, help="classes of the planned model")]
Columns = Annotated[str | None, typer.Option(help="your columns, comma-separated; default: all")]
IdColumn = Annotated[str, typer.Option(help="of a .csv or .parquet file")]
Encode = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=KIND",
        help="text as numbers: ordinal, one_hot, one_hot:missing, number, date or date:FORMAT (repeatable)",
    ),
]
Missing = Annotated[
    Literal["refuse", "drop_row", "mean"] | None,
    typer.Option(help="what becomes of rows with gaps; default: refuse, or as described"),
]
Models = Annotated[int, typer.Option(min=1, max=1000, help="simulated models of each kind")]
Rows = Annotated[int, typer.Option(min=10, help="most of your rows to use")]
Known = Annotated[int, typer.Option(min=0, help="of your rows in the adversary's hands")]
MostLeak = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        help="share of what a blind guess leaves open that an attack may take of a column; default: .2",
    ),
]
LeastError = Annotated[
    float | None, typer.Option(min=0, max=1, help="instead of --most-leak: the MSE you want at least")
]
MostLoss = Annotated[
    float, typer.Option(min=0, max=1, help="AUC of two classes, else accuracy, you give for it at most")
]
TrainingOption = Annotated[
    Literal["clear", "secure"],
    typer.Option("--training", help="clear: its messages are read; secure: nobody sees them"),
]
Seed = Annotated[int, typer.Option(min=0, help="one seed, one result")]
Page = Annotated[Path, typer.Option(help="the page to write")]
Weights = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="a trained model instead of simulated ones: .npz, .safetensors, .onnx, .ubj, .json",
    ),
]
Inputs = Annotated[
    str | None,
    typer.Option(help="with --weights: all inputs of the model in order, comma-separated; default: yours"),
]


def audit(
    source: Source,
    *,
    classes: Classes = None,
    columns: Columns = None,
    id_column: IdColumn = "id",
    encode: Encode = None,
    missing: Missing = None,
    weights: Weights = None,
    inputs: Inputs = None,
    models: Models = 10,
    rows: Rows = 1000,
    known: Known = 50,
    most_leak: MostLeak = None,
    least_error: LeastError = None,
    most_loss: MostLoss = 0.01,
    training: TrainingOption = "clear",
    seed: Seed = 0,
    out: Page = Path("audit.html"),
    show_ids: ShowIds = False,
    json: Json = False,
) -> None:
    """Bounds, attacks and defences for your own columns, alone: before training, or after it with --weights.

    Example: vflens audit examples/bank_passive.csv --classes 2 --columns age,income,credit_score
    """
    from vflens.experiments.audit.bench import Plan
    from vflens.experiments.audit.given import Source as Asked
    from vflens.experiments.audit.given import linear_subject
    from vflens.experiments.run.check import check_writable
    from vflens.experiments.weights.linear import LinearModel
    from vflens.experiments.weights.read import read_model

    out = out / "audit.html" if out.is_dir() else out
    check_writable(out.absolute().parent)  # fail before, not after, minutes of work
    if weights is None and inputs is not None:
        raise ConfigError("--inputs names those of a model: give --weights too")
    kinds = _kinds(encode or [])
    asked = Asked(
        source, classes, _names(columns), id_column, inputs=_names(inputs), encode=kinds, missing=missing
    )
    plan = Plan(
        models,
        known,
        rows,
        seed,
        most_leak=most_leak,
        least_error=least_error,
        most_loss=most_loss,
        training=training,
    )
    plan.wanted()  # fail before, not after, the work
    model = None if weights is None else read_model(weights)
    tables = _checked_table(asked)
    if model is None:
        with identified(show_ids):
            subject = asked.subject(classes)
        _audit_regression(subject, plan, out, tables=tables, json=json)
    elif isinstance(model, LinearModel):
        _audit_regression(linear_subject(asked, model), plan, out, tables=tables, json=json)
    else:
        assert weights is not None
        _audit_given(asked, model, weights, plan, out, tables=tables, json=json)


def _checked_table(asked: Asked) -> Document:
    """What is to be mended in the party's own file; {} of a data set and a run folder."""
    from vflens.experiments.audit.subject import is_table, table_description
    from vflens.experiments.run.own_tables import check_tables

    if not is_table(asked.source):
        return {}
    spec = table_description(Path(asked.source), asked.columns, asked.id_column, asked.encode, asked.missing)
    return note_tables(check_tables({"your table": spec}))


def _audit_regression(subject: AuditSubject, plan: Plan, out: Path, *, tables: Document, json: bool) -> None:
    """Bounds, attacks and defences, on simulated models or the subject's own."""
    from vflens.cli.progress import StageBar
    from vflens.experiments.audit.advice import recommendation
    from vflens.experiments.audit.run import audit as run_audit
    from vflens.experiments.audit.words import sentences, write_audit

    with StageBar() as bar:
        found = {**run_audit(subject, plan, bar), "tables": tables}
    summary = {"verdict": sentences(found), "recommendation": recommendation(found), "report": str(out)}
    try:
        write_audit(found, out)
    finally:  # a full disk costs the page, not the results of minutes
        emit(json, {**summary, **found}, lambda: _text(found, summary))


def _audit_given(
    asked: Asked,
    model: Graph | TreeModel,
    weights: Path,
    plan: Plan,
    out: Path,
    *,
    tables: Document,
    json: bool,
) -> None:
    """Attacks on trees or a network."""
    from vflens.cli.progress import StageBar
    from vflens.experiments.audit import given_run
    from vflens.experiments.audit.given import joint

    rows = joint(asked, model, plan)
    with StageBar() as bar:
        found = {**given_run.audit_given(model, rows, weights, bar), "tables": tables}
    verdict = given_run.sentences(found)
    text = "\n".join([_grids(given_run.table(found), given_run.columns_table(found)), *verdict])
    try:
        given_run.write_given(found, out)
    finally:
        emit(json, {"verdict": verdict, "report": str(out), **found}, lambda: f"{text}\n\nreport: {out}")


def _kinds(texts: Sequence[str]) -> dict[str, str]:
    """Column → kind of each COLUMN=KIND."""
    from vflens.tables.encodings import column_and_kind

    wrong = next((text for text in texts if not column_and_kind(text)[0]), None)
    if wrong is not None:
        raise ConfigError(f"--encode {wrong!r}: give COLUMN=KIND, such as job=one_hot or opened=date")
    return dict(map(column_and_kind, texts))


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


def _text(found: Document, summary: Document) -> str:
    from vflens.experiments.audit.words import alarms, explained, in_terminal, left_out

    grids = _grids(*in_terminal(found))
    attacks = [f"{name}: {words}" for name, words in explained(found).items()]
    lines = [
        *attacks,
        "",
        *alarms(found),
        *summary["verdict"],
        "",
        summary["recommendation"],
        *left_out(found),
    ]
    return "\n".join([grids, *lines, "", f"report: {summary['report']}"])


def _grids(*tables: Sequence[Sequence[str]]) -> str:
    """Tables, each with its header, for the terminal."""
    from rich.table import Column, Table

    grids = []
    for header, *rows in tables:
        grids.append(Table(*(Column(title, overflow="fold") for title in header)))
        for row in rows:
            grids[-1].add_row(*row)
    return plain(*grids)
