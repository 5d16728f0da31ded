"""``vflens compare``: two runs or two audits beside each other."""

from pathlib import Path
from typing import Annotated

import typer

from vflens.cli.output import Json, emit, plain


def compare(
    run_a: Annotated[Path, typer.Argument(help="a run folder, or a document of `vflens audit --json`")],
    run_b: Annotated[Path, typer.Argument(help="another")],
    json: Json = False,
) -> None:
    """Show the differences of two runs, in configuration and in results, or of two audits.

    Example: vflens compare runs/digits/undefended runs/digits/class-label-only
    """
    from vflens.experiments.results import compare as comparison

    if run_a.is_file() and run_b.is_file():
        from vflens.experiments.evidence.tables import compare_audits, compared

        audits = compare_audits(run_a, run_b)
        emit(json, audits, lambda: plain(compared(audits)))
        return
    found = comparison.compare(run_a, run_b)
    emit(json, found, lambda: plain(comparison.table(found)))
