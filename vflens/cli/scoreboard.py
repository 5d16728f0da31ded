"""``vflens scoreboard``: a new attack or defence beside the published rows."""

from pathlib import Path
from typing import Annotated

import typer

from vflens.cli.output import Json, emit, plain
from vflens.cli.screen.progress import CellBar


def scoreboard(
    *,
    attack: Annotated[
        Path | None, typer.Option(help="a file with one attack, as `vflens new attack` makes it")
    ] = None,
    defense: Annotated[
        Path | None, typer.Option(help="a file with one defence, as `vflens new defence` makes it")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="with --defense: keeps finished runs, a later call goes on")
    ] = None,
    data: Annotated[str, typer.Option(help="bank, digits or diabetes")] = "digits",
    page: Annotated[
        Path | None, typer.Option(help="write every published result as one page, to find and draw")
    ] = None,
    since: Annotated[
        Path | None, typer.Option(help="an earlier scoreboard.parquet: say what changed since it")
    ] = None,
    json: Json = False,
) -> None:
    """Rank your attack or defence among those of the scoreboard, with five seeds; or read its results.

    It runs in each federation of its setting, in this process, and is compared with attacks of the same
    threat model on what it estimates, where nothing defends. The rank in brackets is that of both ends of
    its interval. A defence runs with all attacks: rank 1 leaves the best of them the largest error. Its runs
    stay in --folder, else beside its file.

    Example: vflens scoreboard --attack mine.py
    """
    from vflens.errors import ConfigError

    if (attack, defense, page, since).count(None) != 3:
        raise ConfigError(
            "give one of --attack FILE, --defense FILE, --page FILE.html and --since FILE.parquet"
        )
    if folder is not None and defense is None:
        raise ConfigError("--folder keeps the runs of a defence: give --defense FILE too, or leave it out")
    if page is not None:
        _explored(page, json)
    elif since is not None:
        _changed(since, json)
    elif defense is not None:
        _hidden(defense, folder or defense.with_suffix(".runs"), data, json)
    elif attack is not None:
        _ranked(attack, data, json)


def _explored(page: Path, json: bool) -> None:
    from vflens.experiments.pages.page import write_page
    from vflens.experiments.scoreboard.explorer import explored
    from vflens.experiments.scoreboard.kinds import PUBLISHED
    from vflens.storage.arrow import parquet_rows

    command = f"vflens scoreboard --page {page}"
    write_page(page, explored(parquet_rows(PUBLISHED), data=PUBLISHED.name, command=command))
    emit(json, {"page": str(page)}, lambda: f"{page}: every published result.")


def _changed(since: Path, json: bool) -> None:
    from vflens.experiments.scoreboard.changes import changes, said
    from vflens.experiments.scoreboard.entry import earlier
    from vflens.experiments.scoreboard.grid import ScoreboardGrid
    from vflens.experiments.scoreboard.kinds import PUBLISHED
    from vflens.storage.arrow import parquet_rows

    found = changes(earlier(since), parquet_rows(PUBLISHED), ScoreboardGrid())
    emit(json, found, lambda: said(found))


def _ranked(attack: Path, data: str, json: bool) -> None:
    from vflens.experiments.scoreboard.entry import EntryRank, compared

    with CellBar("scoreboard") as bar:
        found, seconds = compared(attack, data, bar)

    def table(standing: EntryRank) -> str:
        from rich.table import Table

        shown = Table("attack", "relative error", box=None)
        for line in standing.lines:
            mark = "→ " if line.attack == standing.attack else "  "
            shown.add_row(f"{mark}{line.attack}", f"{line.mean:.2f} ± {line.half:.2f}")
        return f"{standing}\n{plain(shown)}"

    def text() -> str:
        sections = [table(standing) if standing.lines else f"{standing}\n" for standing in found]
        return "\n".join([*sections, f"Its runs took {seconds:.0f} s."])

    emit(json, {"standings": [s.record() for s in found], "seconds": seconds}, text)


def _hidden(defense: Path, folder: Path, data: str, json: bool) -> None:
    from vflens.experiments.scoreboard.defended import hidden_by

    with CellBar("scoreboard") as bar:
        found = hidden_by(defense, data, folder, bar)
    emit(json, {"ranks": [one.record() for one in found]}, lambda: "\n".join(map(str, found)))
