"""``vflens audit``: what your own columns would reveal, before any training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import typer

from vflens.cli.decide import audit_flags
from vflens.cli.decide.planned_flags import note_replaced
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
from vflens.cli.output import Json, ShowIds, emit, grids, identified, note, note_tables
from vflens.cli.screen.audit_page import Port, Serve, refuse_others, serve_audit
from vflens.types import Document, LabelKind

if TYPE_CHECKING:
    from vflens.experiments.audit.bench import Plan
    from vflens.experiments.audit.given import Source as Asked
    from vflens.experiments.audit.record import AuditRecord
    from vflens.experiments.audit.subject import AuditSubject
    from vflens.experiments.weights.network import Graph
    from vflens.experiments.weights.trees import TreeModel

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
    Literal["classes", "number"] | None, typer.Option("--label-kind", hidden=True, help="of --label")
]
_OR = "; or in a description"
#: What ``[audit]`` of a description states; flags that no remedy names are hidden.
Models = Annotated[int, typer.Option(min=1, max=1000, hidden=True)]
Rows = Annotated[int, typer.Option(min=10, help=f"most rows to use{_OR}")]
SlowRows = Annotated[int | None, typer.Option(min=1, help=f"rows that a slow attack tries{_OR}")]
Known = Annotated[int, typer.Option(min=0, help=f"rows in the adversary's hands{_OR}")]
MostLeak = Annotated[float | None, typer.Option(min=0, max=1, hidden=True)]
LeastError = Annotated[float | None, typer.Option(min=0, max=1, hidden=True)]
MostLoss = Annotated[float, typer.Option(min=0, max=1, hidden=True)]
Tolerance = Annotated[list[str] | None, typer.Option(metavar="COLUMN=WIDTH", hidden=True)]
TrainingOption = Annotated[
    Literal["clear", "secure"], typer.Option("--training", help=f"whether its messages are read{_OR}")
]
Seed = Annotated[int, typer.Option(min=0, hidden=True)]
Details = Annotated[
    bool, typer.Option("--details", help="print what each attack reaches, bounds and worst cases too")
]
Yes = Annotated[bool, typer.Option("--yes", help="go on although no advice can follow")]
Page = Annotated[Path, typer.Option(help="the page to write")]
Weights = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="a trained model instead of simulated ones: .npz, .safetensors, .onnx, .ubj, .json, .txt",
    ),
]
Inputs = Annotated[
    str | None,
    typer.Option(help="with --weights: all inputs of the model in order, comma-separated; default: yours"),
]
Batches = Annotated[
    bool,
    typer.Option(
        "--batches", help="only: how many of your rows one round of clients gives away, by its rows"
    ),
]
#: What ``--batches`` reads.
_OF_ROUNDS = frozenset(
    ("source", "batches", "classes", "columns", "id_column", "encode", "missing", "label", "label_kind")
) | {"seed", "show_ids", "json"}


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
    batches: Batches = False,
    show_ids: ShowIds = False,
    table: TableFile = None,
    fail_if: FailIf = None,
    fail_if_beats_blind: FailIfBeatsBlind = False,
    junit: JUnit = None,
    yes: Yes = False,
    serve: Serve = False,
    port: Port = 0,
    json: Json = False,
) -> None:
    """Bounds, attacks and defences for your own columns, alone: before training, or after it with --weights.

    Example: vflens audit examples/bank_passive.csv --classes 2 --columns age,income,credit_score
    """
    if serve or port or source is None:
        serve_audit(given, serve=serve, port=port, json=json)
        return
    from vflens.experiments.audit.subject import is_table

    out = _writable(out)
    check_table(table)
    planned = audit_flags.plan(given, source)
    asked = _asked(given, source, planned.pop("label_kind", None))
    if batches:
        _audit_rounds(given, asked, planned.get("seed", 0))
        return
    gated = gate(fail_if, fail_if_beats_blind, junit)
    plan = _plan(planned, gated, described=is_table(source))
    _audit(asked, plan, weights, _Output(out, {}, gated, table, json, details, yes), show_ids=show_ids)
    if is_table(source):  # others have no description, and keep their flags
        note_replaced(given, "audit")


def _asked(given: typer.Context, source: str, planned_kind: LabelKind | None) -> Asked:
    """What the flags ask of ``source``; a trained model takes no kind of a label from the plan."""
    from vflens.experiments.audit.given import Source as Asked

    flags = given.params
    kind = flags["label_kind"] if flags["weights"] else planned_kind
    labelled = audit_flags.of_model(flags["weights"], flags["inputs"], flags["label"], kind)
    mine, inputs = audit_flags.names(flags["columns"]), audit_flags.names(flags["inputs"])
    kinds = audit_flags.kinds(flags["encode"] or [])
    classes, id_column = flags["classes"], flags["id_column"]
    return Asked(source, classes, mine, id_column, inputs, kinds, flags["missing"], **labelled)


def _plan(planned: Document, gated: Gate, *, described: bool) -> Plan:
    """The plan, refused before the work and not after it."""
    from vflens.experiments.audit.bench import Plan
    from vflens.experiments.audit.given import FlagPlan

    tolerance = audit_flags.stated(planned.get("tolerance", {}), gated)
    plan = (Plan if described else FlagPlan)(**{**planned, "tolerance": tolerance})
    plan.wanted()
    return plan if gated.open or plan.slow_rows is not None else replace(plan, slow_rows=plan.rows)


def _audit(asked: Asked, plan: Plan, weights: Path | None, output: _Output, *, show_ids: bool) -> None:
    """Audit what was ``asked`` on simulated models, or on the one in ``weights``."""
    from vflens.experiments.audit.given import begun, linear_subject
    from vflens.experiments.weights.linear import LinearModel
    from vflens.experiments.weights.read import read_model

    model = None if weights is None else read_model(weights)
    own = {"tables": _checked_table(asked), **begun([*asked.files(), *filter(None, [weights])])}
    output = output._replace(own=own)
    if weights is None or model is None:
        with identified(show_ids):
            subject = asked.subject(asked.classes)
        _audit_regression(subject, plan, output)
    elif isinstance(model, LinearModel):
        _audit_regression(linear_subject(asked, model), plan, output)
    else:
        _audit_given(asked, model, weights, plan, output)


_SHOWN = 20  # columns in the terminal


class _Output(NamedTuple):
    """Where results go, what the command itself adds of its input, what judges them, and whether to go on
    although no advice can follow.
    """

    out: Path
    own: Document
    gated: Gate
    table: Path | None
    json: bool
    details: bool
    anyhow: bool

    def write(self, measured: AuditRecord, exposed: Document) -> None:
        """Print and write what was ``measured``, and judge it."""
        from vflens.experiments.audit.advice import recommendation
        from vflens.experiments.audit.given import utc_now
        from vflens.experiments.audit.words import sentences, write_audit, write_exposed
        from vflens.experiments.evidence.sources import of_audit

        record = replace(measured, **self.own, ended=utc_now())
        advice = {} if record.is_given else {"recommendation": recommendation(record)}
        summary = {"verdict": sentences(record), **advice, "report": str(self.out)}
        judged = self.gated.judged(lambda: [of_audit(record)])
        written = write_table(self.table, lambda: [of_audit(record)])
        try:
            write_exposed(exposed, self.out)
            write_audit(record, self.out)
        finally:  # a full disk costs the page, not the results of minutes
            whole = {**summary, **record.json, **judged.json, **written}
            emit(self.json, whole, lambda: f"{self._text(record)}{judged.text}")
        judged.enforce()

    def _text(self, record: AuditRecord) -> str:
        """The short form, the table of columns, more where it is asked for, and the page."""
        from vflens.experiments.audit.charts import columns_table, tables, tells_table
        from vflens.experiments.audit.words import in_detail, in_short

        header, *rows = columns_table(record)
        left = f"… {len(rows) - _SHOWN} more columns on the page\n" if len(rows) > _SHOWN else ""
        lines = [*in_short(record), "", f"{grids([header, *rows[:_SHOWN]])}{left}"]
        if self.details:
            tells = [tells_table(record)] if record.tells else []
            lines += [grids(*tables(record), *tells), *in_detail(record), ""]
        end = "" if self.details else " (--details prints what is behind it here too)"
        return "\n".join([*lines, f"report: {self.out}{end}"])


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


def _audit_regression(subject: AuditSubject, plan: Plan, output: _Output) -> None:
    """Bounds, attacks and defences, on simulated models or the subject's own."""
    from vflens.cli.screen.progress import StageBar
    from vflens.experiments.audit.advice import check_advice, cost
    from vflens.experiments.audit.run import audit as run_audit

    exposed: Document = {}
    output.gated.check_columns(lambda: [c.name for c in subject.columns])
    if not output.anyhow:
        check_advice(subject, plan)
    if subject.assumed and subject.label is None:
        note(subject.assumed)
    note(f"this audit: {cost(subject, plan)}")
    with StageBar() as bar:
        record = run_audit(subject, plan, bar, exposed.update)
    output.write(record, exposed)


def _audit_rounds(given: typer.Context, asked: Asked, seed: int) -> None:
    """What rounds of clients with this table send."""
    from vflens.experiments.outcome.batches import HIDDEN, rounds, sent

    refuse_others(given, _OF_ROUNDS, "--batches inverts rounds and nothing else")
    json = given.params["json"]
    with identified(given.params["show_ids"]):
        subject = asked.subject(given.params["classes"])
    found = list(rounds(subject.x, max(2, subject.classes), seed))
    facts = {"verdict": sent(found), "hidden": HIDDEN, "seed": seed}
    lines = [["rows of a round", "rows tried", "found exactly"]]
    lines += [[str(number) for number in one] for one in found]
    emit(
        json,
        {**facts, "rounds": [one._asdict() for one in found]},
        lambda: f"{sent(found)}\n\n{grids(lines)}",
    )


def _audit_given(asked: Asked, model: Graph | TreeModel, weights: Path, plan: Plan, output: _Output) -> None:
    """Attacks on trees or a network."""
    from vflens.cli.screen.progress import StageBar
    from vflens.experiments.audit.given import joint
    from vflens.experiments.audit.given_run import audit_given

    rows = joint(asked, model, plan)
    exposed: Document = {}
    output.gated.check_columns(lambda: [c.name for c in rows.bench.subject.columns])
    with StageBar() as bar:
        record = audit_given(model, rows, weights, bar, exposed.update)
    output.write(record, exposed)
