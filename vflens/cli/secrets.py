"""``vflens secrets``: good ones in parties' configurations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vflens.cli.output import Json, emit

app = typer.Typer(no_args_is_help=True, help="The secrets of parties' configurations.")


@app.command()
def init(
    files: Annotated[list[Path], typer.Argument(help="configurations of parties of one federation (TOML)")],
    json: Json = False,
) -> None:
    """Draw random secrets where the configurations lack good ones.

    Missing, weak and example secrets are replaced, good ones stay. Of the files given, each pair of parties
    gets the same token and all data parties the same alignment key. The files are then their owner's alone
    (mode 600).

    Example: vflens secrets init passive.toml active.toml coordinator.toml
    """
    from vflens.config.fill import fill

    written = {str(file): fields for file, fields in fill(files).items()}
    emit(json, written, lambda: "\n".join(_line(f, fields) for f, fields in written.items()))


def _line(file: str, fields: list[str]) -> str:
    return "\n  ".join([f"{file}: {'drawn' if fields else 'every secret is good, none was drawn'}", *fields])
