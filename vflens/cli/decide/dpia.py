"""``vflens dpia``: the document that a data protection officer signs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vflens.cli.output import Json, emit
from vflens.errors import ConfigError

if TYPE_CHECKING:
    from vflens.experiments.evidence.dpia import Dpia


def dpia(
    sources: Annotated[
        list[Path],
        typer.Argument(help="run folders, JSON of `vflens audit --json`, folders of sweeps"),
    ],
    declared: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="TOML: controller, purpose, people, prior, safeguards, assessor (all optional)",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="the page to write; Markdown and JSON are written beside it")
    ] = Path("dpia.html"),
    json: Json = False,
) -> None:
    """Write a data protection impact assessment: what each recipient reconstructs, what is declared, what
    remains, what was tried and what was not tested. What is not declared is asked for by name.

    Example: vflens dpia runs/digits --declared declared.toml
    """
    from vflens.experiments.evidence.declared import read_declared
    from vflens.experiments.evidence.dpia import assess
    from vflens.experiments.evidence.rendering import write_dpia

    given = {file.resolve() for file in (*sources, *([declared] if declared else []))}
    if overwritten := given & {out.with_suffix(s).resolve() for s in (out.suffix, ".md", ".json")}:
        raise ConfigError(f"--out {out} would write over {overwritten.pop().name}: choose another name")
    made = assess(sources, read_declared(declared))
    files = write_dpia(made, out)
    emit(json, {**made.json, "files": files}, lambda: _text(made, files))


def _text(made: Dpia, files: dict[str, str]) -> str:
    """What each recipient finds, what is missing, and the files."""
    from vflens.cli.output import grids
    from vflens.experiments.evidence import matrix
    from vflens.experiments.evidence.words import missing

    head, body = matrix.rows(made.measured)
    table = [grids([head, *body])] if body else []
    text = [matrix.sentence(made.measured), *table, *missing(made.declared), ""]
    return "\n".join([*text, *(f"{kind}: {file}" for kind, file in files.items())])
