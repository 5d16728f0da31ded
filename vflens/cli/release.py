"""``vflens release``: a table under noise, with a certificate of the protection and its limits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vflens.cli.decide.planned_flags import note_replaced, typed
from vflens.cli.output import Json, emit, note
from vflens.errors import INTERRUPTED, VflensError
from vflens.types import Document
from vflens.words import counted

if TYPE_CHECKING:
    from vflens.experiments.release.options import ReleaseOptions


Table = Annotated[
    Path,
    typer.Argument(
        help="the owner's table: .csv, .csv.gz, .csv.bz2, .csv.zst or .parquet; or a .toml that describes it"
    ),
]
Out = Annotated[Path, typer.Option(help="the released table; its certificate is written beside it")]
MechanismName = Annotated[str, typer.Option(help="gaussian, laplace, bounded or correlated")]
Label = Annotated[str | None, typer.Option(help="a column that is released unchanged")]
Ids = Annotated[list[str] | None, typer.Option("--id", help="an identifier: left out (repeatable)")]
Encode = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[COLUMN=]KIND",
        help="all text, or a column of it, as numbers; kinds as in `vflens audit` (repeatable)",
    ),
]
Missing = Annotated[str, typer.Option(help="refuse, or drop_row")]
Lambda = Annotated[float | None, typer.Option("--lambda", help="weight of utility: larger is less noise")]
Epsilon = Annotated[float | None, typer.Option(help="local differential privacy instead of --lambda")]
Diameter = Annotated[
    str | None, typer.Option(help="public bound on the difference of two rows in a column: N or N,N,…")
]
Pi = Annotated[
    str | None, typer.Option(help="identity, standardise (noise in proportion to deviations), or a file")
]
Seed = Annotated[
    str | None, typer.Option(help="the same seed gives the same noise; default: random. Keep it secret")
]
Force = Annotated[bool, typer.Option("--force", help="replace existing output")]
#: What ``[release]`` of a description states; these flags are hidden.
Text = Annotated[str | None, typer.Option(hidden=True)]
Number = Annotated[float | None, typer.Option(hidden=True)]


def release(
    given: typer.Context,
    *,
    table: Table,
    out: Out,
    mechanism: MechanismName = "gaussian",
    label: Label = None,
    ids: Ids = None,
    keep_ids: Annotated[bool, typer.Option("--keep-ids", hidden=True)] = False,
    encode: Encode = None,
    missing: Missing = "refuse",
    lambda_: Lambda = None,
    target_mse: Number = None,
    epsilon: Epsilon = None,
    delta: Number = None,
    diameter: Diameter = None,
    pi: Pi = None,
    matched: Text = None,
    lower: Text = None,
    upper: Text = None,
    m: Number = None,
    theta: Number = None,
    rho: Number = None,
    seed: Seed = None,
    excel_safe: Annotated[bool, typer.Option("--excel-safe", hidden=True)] = False,
    verify: Annotated[bool, typer.Option("--verify", hidden=True)] = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Release a table under optimal noise, with a certificate (JSON and a page) beside it.

    Example: vflens release examples/bank_active.csv --id id --label subscribed --lambda 1 --pi standardise
    --out released.csv
    """
    from vflens.experiments.release.planned import options_for

    names = [name for name in given.params if name not in ("table", "out", "json")]
    _release(options_for(table, out, typed(given, names)), json)
    note_replaced(given, "release")


class _InterruptedError(VflensError):
    """Turn Ctrl-C into an error: unlike a run, an interrupted release keeps no file."""

    exit_code, word = INTERRUPTED, "interrupted"


def _release(options: ReleaseOptions, json: bool) -> None:
    from vflens.cli.screen.progress import FileBar
    from vflens.experiments.release.run import release as release_table

    try:
        with FileBar() as bar:
            done = release_table(options, bar.update)
    except KeyboardInterrupt:
        raise _InterruptedError(f"interrupted: {options.out} was not written") from None
    for warning in done.facts["warnings"]:
        note(f"warning: {warning}")
    emit(json, done.facts, lambda: _summary(done.facts, done.table, done.certificate, done.page))


def _summary(facts: Document, *files: Path) -> str:
    from vflens.experiments.release.page import headline

    lines = [
        f"{counted(facts['rows'], 'row')}, {counted(len(facts['columns']), 'column')} with "
        f"{facts['mechanism']} noise",
        headline(facts),
    ]
    ldp, solved = facts["ldp"], facts["classifier"]
    if ldp["epsilon_exact"] is not None:
        lines.append(f"ε = {ldp['epsilon_exact']:.4g} at δ = {ldp['delta']:g}, one row, one release")
    else:
        lines.append(f"no ε: {ldp['reason']}")
    if solved:
        kept = "preserved" if solved["preserved"] else "NOT preserved"
        lines.append(f"classifier {kept}: solved again, it moves by {solved['relative_change']:.1e}")
        if solved["verified"] is not None:
            lines.append(f"classifier solved again in CVXPY: it differs by {solved['verified']:.1e}")
    return "\n".join(
        [
            *lines,
            *(f"{what}: {file}" for what, file in zip(("table", "certificate", "page"), files, strict=True)),
        ]
    )
