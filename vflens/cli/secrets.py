"""``vflens secrets``: random secrets for parties' configurations."""

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

    It replaces missing, weak and example secrets; good ones stay. Each pair of the files' parties gets the
    same token, all data parties the same alignment key. Afterwards only the owner can read the files (mode
    600).

    Example: vflens secrets init passive.toml active.toml coordinator.toml
    """
    from vflens.config.fill import fill

    written = {str(file): fields for file, fields in fill(files).items()}
    emit(json, written, lambda: "\n".join(_line(f, fields) for f, fields in written.items()))


def _line(file: str, fields: list[str]) -> str:
    return "\n  ".join([f"{file}: {'drawn' if fields else 'every secret is good, no new one'}", *fields])
