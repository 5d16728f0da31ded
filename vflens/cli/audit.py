"""``vflens audit``: what your own columns would reveal, before any training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vflens.cli.output import Json, emit, plain
from vflens.errors import ConfigError
from vflens.types import Document

_MOST_COLUMNS = 64  # rows in the terminal; the page and --json have all

Source = Annotated[
    str,
    typer.Argument(
        help="your .csv or .parquet, a .toml that describes it, a data set's name, or your run folder"
    ),
]
Classes = Annotated[int | None, typer.Option(min=2, help="classes of the planned model")]
Columns = Annotated[str | None, typer.Option(help="your columns, comma-separated; default: all")]
IdColumn = Annotated[str, typer.Option(help="of a .csv or .parquet file")]
Models = Annotated[int, typer.Option(min=1, max=1000, help="simulated models of each kind")]
Rows = Annotated[int, typer.Option(min=10, help="most of your rows to use")]
Known = Annotated[int, typer.Option(min=0, help="of your rows in the adversary's hands")]
LeastError = Annotated[
    float | None, typer.Option(min=0, max=1, help="MSE you want at least; default: .8 of a blind guess's")
]
MostLoss = Annotated[float, typer.Option(min=0, max=1, help="accuracy you give for it at most")]
Seed = Annotated[int, typer.Option(min=0, help="one seed, one result")]
Page = Annotated[Path, typer.Option(help="the page to write")]
Weights = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="a trained model instead of simulated ones: .npz, .safetensors"),
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
    weights: Weights = None,
    inputs: Inputs = None,
    models: Models = 10,
    rows: Rows = 1000,
    known: Known = 50,
    least_error: LeastError = None,
    most_loss: MostLoss = 0.01,
    seed: Seed = 0,
    out: Page = Path("audit.html"),
    json: Json = False,
) -> None:
    """Bounds, attacks and defences for your own columns, alone: before training, or after it with --weights.

    Example: vflens audit examples/bank_passive.csv --classes 2 --columns age,income,credit_score
    """
    from vflens.cli.progress import StageBar
    from vflens.experiments.audit.bench import Plan
    from vflens.experiments.audit.given import model_subject, with_model
    from vflens.experiments.audit.run import audit as run_audit
    from vflens.experiments.audit.subject import load_subject
    from vflens.experiments.audit.words import recommendation, sentences, write_audit
    from vflens.experiments.run.check import check_writable
    from vflens.experiments.weights.read import read_model

    out = out / "audit.html" if out.is_dir() else out
    check_writable(out.absolute().parent)  # fail before, not after, minutes of work
    chosen: Document = {"columns": _names(columns), "id_column": id_column}
    if weights is None and inputs is not None:
        raise ConfigError("--inputs names those of a model: give --weights too")
    if weights is None:
        subject = load_subject(source, classes=classes, **chosen)
    else:
        model = read_model(weights)
        subject = with_model(model_subject(source, model, classes=classes, **chosen), model, _names(inputs))
    plan = Plan(models, known, rows, seed, least_error, most_loss)
    with StageBar() as bar:
        found = run_audit(subject, plan, bar)
    summary = {"verdict": sentences(found), "recommendation": recommendation(found), "report": str(out)}
    try:
        write_audit(found, out)
    finally:  # a full disk costs the page, not the results of minutes
        emit(json, {**summary, **found}, lambda: _text(found, summary))


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


def _text(found: Document, summary: Document) -> str:
    from rich.table import Column, Table

    from vflens.experiments.audit.words import alarms, bounds_table, columns_table, left_out, table

    grids = []
    for header, *rows in filter(None, (table(found), bounds_table(found), columns_table(found))):
        grids.append(Table(*(Column(title, overflow="fold") for title in header)))
        for row in rows:
            grids[-1].add_row(*row)
    lines = [*alarms(found), *summary["verdict"], "", summary["recommendation"], *left_out(found)]
    return "\n".join([plain(*grids), *lines, "", f"report: {summary['report']}"])
