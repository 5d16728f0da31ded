"""``vflens audit``: what your own columns would reveal, before any training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import typer

from vflens.cli.decide import audit_flags
from vflens.cli.decide.thresholds import (
    FailIf,
    FailIfBeatsBlind,
    Gate,
    JUnit,
    TableFile,
    check_table,
    gate,
    write_table,
)
from vflens.cli.output import Json, ShowIds, emit, grids, identified, note_tables
from vflens.cli.screen.audit_page import Port, Serve, serve_audit
from vflens.types import Document

if TYPE_CHECKING:
    from vflens.experiments.audit.bench import Plan
    from vflens.experiments.audit.given import Source as Asked
    from vflens.experiments.audit.subject import AuditSubject
    from vflens.experiments.outcome.finding import Findings
    from vflens.experiments.weights.network import Graph
    from vflens.experiments.weights.xgboost import TreeModel

Source = Annotated[
    str | None,
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
Label = Annotated[
    str | None,
    typer.Option(help="the column of your file that the planned model predicts"),
]
Kind = Annotated[
    Literal["classes", "number"] | None,
    typer.Option("--label-kind", help="of --label; default: a number if more than 20 differ"),
]
Models = Annotated[int, typer.Option(min=1, max=1000, help="simulated models of each kind")]
Rows = Annotated[int, typer.Option(min=10, help="most of your rows to use")]
SlowRows = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="rows that a slow attack tries; default: as it declares, with a threshold all that are attacked",
    ),
]
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
    float,
    typer.Option(min=0, max=1, help="AUC of 2 classes, R² of a number, else accuracy, you give for it"),
]
Tolerance = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=WIDTH",
        help="how far from the truth, in its unit, counts as found (repeatable); default: 1/20 of its range",
    ),
]
TrainingOption = Annotated[
    Literal["clear", "secure"],
    typer.Option("--training", help="clear: its messages are read; secure: nobody sees them"),
]
Seed = Annotated[int, typer.Option(min=0, help="one seed, one result")]
Details = Annotated[
    bool, typer.Option("--details", help="print what each attack reaches, bounds and worst cases too")
]
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
    given: typer.Context,
    source: Source = None,
    *,
    classes: Classes = None,
    columns: Columns = None,
    id_column: IdColumn = "id",
    encode: Encode = None,
    missing: Missing = None,
    label: Label = None,
    label_kind: Kind = None,
    weights: Weights = None,
    inputs: Inputs = None,
    models: Models = 10,
    rows: Rows = 1000,
    slow_rows: SlowRows = None,
    known: Known = 50,
    most_leak: MostLeak = None,
    least_error: LeastError = None,
    most_loss: MostLoss = 0.01,
    training: TrainingOption = "clear",
    tolerance: Tolerance = None,
    seed: Seed = 0,
    out: Page = Path("audit.html"),
    details: Details = False,
    show_ids: ShowIds = False,
    table: TableFile = None,
    fail_if: FailIf = None,
    fail_if_beats_blind: FailIfBeatsBlind = False,
    junit: JUnit = None,
    serve: Serve = False,
    port: Port = 0,
    json: Json = False,
) -> None:
    """Bounds, attacks and defences for your own columns, alone: before training, or after it with --weights.

    Example: vflens audit examples/bank_passive.csv --classes 2 --columns age,income,credit_score
    """
    from vflens.experiments.audit.bench import Plan
    from vflens.experiments.audit.given import Source as Asked
    from vflens.experiments.audit.given import begun, linear_subject
    from vflens.experiments.weights.linear import LinearModel
    from vflens.experiments.weights.read import read_model

    if serve or port or source is None:
        serve_audit(given, serve=serve, port=port, json=json)
        return
    out = _writable(out)
    check_table(table)
    kinds, gated = audit_flags.kinds(encode or []), gate(fail_if, fail_if_beats_blind, junit)
    labelled = audit_flags.of_model(weights, inputs, label, label_kind)
    mine, all_inputs = audit_flags.names(columns), audit_flags.names(inputs)
    asked = Asked(source, classes, mine, id_column, all_inputs, kinds, missing, **labelled)
    plan = Plan(
        models,
        known,
        rows,
        seed,
        most_leak=most_leak,
        least_error=least_error,
        most_loss=most_loss,
        training=training,
        tolerance=audit_flags.stated(audit_flags.widths(tolerance or []), gated),
        slow_rows=slow_rows or (None if gated.open else rows),
    )
    plan.wanted()  # fail before, not after, the work
    model = None if weights is None else read_model(weights)
    own = {"tables": _checked_table(asked), **begun([*asked.files(), *filter(None, [weights])])}
    told = _Told(out, own, gated, table, json, details)
    if model is None:
        with identified(show_ids):
            subject = asked.subject(classes)
        _audit_regression(subject, plan, told)
    elif isinstance(model, LinearModel):
        _audit_regression(linear_subject(asked, model), plan, told)
    else:
        assert weights is not None
        _audit_given(asked, model, weights, plan, told)


_SHOWN = 20  # columns in the terminal


class _Told(NamedTuple):
    """Where results go, what the command itself says of its input, and what judges them."""

    out: Path
    own: Document
    gated: Gate
    table: Path | None
    json: bool
    details: bool

    def text(self, short: Sequence[str], columns: Sequence[Sequence[str]], *more: str) -> str:
        """The ``short`` form, the table of ``columns``, ``more`` where it is asked for, and the page."""
        header, *rows = columns
        left = f"… {len(rows) - _SHOWN} more columns on the page\n" if len(rows) > _SHOWN else ""
        lines = [*short, "", f"{grids([header, *rows[:_SHOWN]])}{left}"]
        end = "" if self.details else " (--details prints what is behind it here too)"
        return "\n".join([*lines, *(more if self.details else ()), f"report: {self.out}{end}"])


def _writable(out: Path) -> Path:
    """The page's file, ``out`` or in the folder ``out``: refused before, not after, minutes of work."""
    from vflens.experiments.run.check import check_writable

    out = out / "audit.html" if out.is_dir() else out
    check_writable(out.absolute().parent)
    return out


def _checked_table(asked: Asked) -> Document:
    """What is to be mended in the party's own file; {} of a data set and a run folder."""
    from vflens.experiments.audit.subject import is_table
    from vflens.experiments.run.own_tables import check_tables

    if not is_table(asked.source):
        return {}
    return note_tables(check_tables({"your table": asked.described(Path(asked.source))}))


def _audit_regression(subject: AuditSubject, plan: Plan, told: _Told) -> None:
    """Bounds, attacks and defences, on simulated models or the subject's own."""
    from vflens.cli.screen.progress import StageBar
    from vflens.experiments.audit.advice import recommendation
    from vflens.experiments.audit.given import utc_now
    from vflens.experiments.audit.run import audit as run_audit
    from vflens.experiments.audit.words import sentences, write_audit, write_exposed

    exposed: Document = {}
    told.gated.check_columns(lambda: [c.name for c in subject.columns])
    with StageBar() as bar:
        found = {**run_audit(subject, plan, bar, exposed.update), **told.own, "ended": utc_now()}
    summary = {"verdict": sentences(found), "recommendation": recommendation(found), "report": str(told.out)}
    judged = told.gated.judged(lambda: _evidence(found))
    written = write_table(told.table, lambda: _evidence(found))
    try:
        write_exposed(exposed, told.out)
        write_audit(found, told.out)
    finally:  # a full disk costs the page, not the results of minutes
        emit(
            told.json,
            {**summary, **found, **judged.json, **written},
            lambda: f"{_text(found, told)}{judged.text}",
        )
    judged.enforce()


def _evidence(found: Document) -> Sequence[Findings]:
    """What an audit says of thresholds."""
    from vflens.experiments.evidence.sources import of_audit

    return [of_audit(found)]


def _audit_given(asked: Asked, model: Graph | TreeModel, weights: Path, plan: Plan, told: _Told) -> None:
    """Attacks on trees or a network."""
    from vflens.cli.screen.progress import StageBar
    from vflens.experiments.audit import given_run
    from vflens.experiments.audit.given import joint, utc_now
    from vflens.experiments.audit.words import worst_cases, write_exposed

    rows = joint(asked, model, plan)
    exposed: Document = {}
    told.gated.check_columns(lambda: [c.name for c in rows.bench.subject.columns])
    with StageBar() as bar:
        found = {**given_run.audit_given(model, rows, weights, bar, exposed.update), **told.own}
        found["ended"] = utc_now()
    verdict = given_run.sentences(found)
    attacks = [f"{name}: {words}" for name, words in given_run.explained(found).items()]
    more = grids(given_run.table(found)), *attacks, *worst_cases(found), ""
    judged = told.gated.judged(lambda: _evidence(found))
    written = write_table(told.table, lambda: _evidence(found))
    try:
        write_exposed(exposed, told.out)
        given_run.write_given(found, told.out)
    finally:
        whole = {"verdict": verdict, "report": str(told.out), **found, **judged.json, **written}
        text = told.text(verdict, given_run.columns_table(found), *more)
        emit(told.json, whole, lambda: f"{text}{judged.text}")
    judged.enforce()


def _text(found: Document, told: _Told) -> str:
    from vflens.experiments.audit.words import bounds_table, columns_table, in_detail, in_short, table

    more = grids(table(found), bounds_table(found)), *in_detail(found), ""
    return told.text(in_short(found), columns_table(found), *more)
