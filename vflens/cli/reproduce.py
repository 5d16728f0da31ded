"""``vflens reproduce`` and ``vflens sweep``: figures and sweeps, as data and as a page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vflens.cli.decide.thresholds import (
    FailIf,
    FailIfBeatsBlind,
    Judged,
    JUnit,
    TableFile,
    check_table,
    gate,
    write_table,
)
from vflens.cli.output import Json, emit, plain, width
from vflens.errors import ConfigError
from vflens.types import Document
from vflens.words import counted

if TYPE_CHECKING:
    from vflens.experiments.outcome.finding import Findings

Jobs = Annotated[int, typer.Option(help="processes at a time", min=1)]
BackendName = Annotated[str, typer.Option(help="loky: processes here; dask: a cluster, with all its slots")]


def reproduce(
    *,
    name: Annotated[str, typer.Argument(help="a figure, such as rvg-fig4; `list` lists them")],
    out: Annotated[
        Path, typer.Option(help="folder for NAME.parquet and NAME.html; NAME-quick, NAME-full")
    ] = Path("figures"),
    quick: Annotated[bool, typer.Option("--quick", help="coarse: few sizes, windows and epochs")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="FedAdOb's pages: the paper's rows and epochs")
    ] = False,
    seed: Annotated[int, typer.Option(help="decides every draw", min=0)] = 0,
    seeds: Annotated[
        int | None,
        typer.Option(help="FedAdOb's pages, tableak: so many seeds, and finished cells stay for more", min=1),
    ] = None,
    model: Annotated[
        str, typer.Option(help="FedAdOb's pages: this model alone, such as lenet, whose cells stay for more")
    ] = "",
    epochs: Annotated[
        int | None,
        typer.Option(help="fao-table4, 5, 6 and fao-fig4: so many epochs, not those of the size", min=1),
    ] = None,
    finished: Annotated[
        bool,
        typer.Option("--finished", help="FedAdOb's pages, tableak: draw what is computed, compute nothing"),
    ] = False,
    jobs: Jobs = 1,
    backend: BackendName = "loky",
    json: Json = False,
) -> None:
    """Make a figure of the papers: its data as parquet, its plots as one page.

    After an interruption it resumes. FAR's figures, minutes each, start again and use one process.

    Example: vflens reproduce rvg-fig4 --quick
    """
    from vflens.cli.screen.progress import CellBar
    from vflens.experiments.figures import FigureOptions, Size, figures, page
    from vflens.experiments.figures import reproduce as make
    from vflens.experiments.run.check import check_writable
    from vflens.experiments.sweeps.pool import Pool

    if quick and full:
        raise ConfigError("--quick and --full exclude each other: give one of them")
    size: Size = "quick" if quick else "full" if full else "default"
    if name == "list":
        found = {f.name: f.title for f in figures().values()}
        emit(json, found, lambda: "\n".join(f"{n:<10} {title}" for n, title in found.items()))
        return
    check_writable(out.absolute())  # fail before, not after, minutes of training
    kept = page(name, size).kept(out, size, seed)
    with CellBar(name) as bar:
        pool = Pool(kept, jobs, backend, bar, only_finished=finished)  # type: ignore[arg-type]  # checked there
        options = FigureOptions(pool, size, seed, seeds=seeds, model=model, epochs=epochs)
        facts = make(name, options, out)
    emit(json, facts, lambda: _summary(facts))


def sweep(
    *,
    file: Annotated[Path, typer.Argument(help="an experiment (TOML) with a table called sweep")],
    out: Annotated[Path, typer.Option(help="folder for sweep.parquet and sweep.html")] = Path("sweep"),
    jobs: Jobs = 1,
    backend: BackendName = "loky",
    part: Annotated[
        str | None,
        typer.Option(metavar="I/N", help="only the I-th of N parts of the cells; without it all are merged"),
    ] = None,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="show its cells on a page as they come; on a terminal until Ctrl-C"),
    ] = False,
    table: TableFile = None,
    fail_if: FailIf = None,
    fail_if_beats_blind: FailIfBeatsBlind = False,
    junit: JUnit = None,
    json: Json = False,
) -> None:
    """Every attack against every defence at every strength, for several seeds. After an interruption it
    resumes.

    Example: vflens sweep examples/sweep.toml --jobs 2
    """
    from vflens.cli.screen.progress import CellBar
    from vflens.cli.screen.watched import Watched
    from vflens.experiments.run.check import check_writable
    from vflens.experiments.run.dealer import column_names
    from vflens.experiments.sweeps.pool import Pool, Share
    from vflens.experiments.sweeps.sweep import run_part, run_sweep
    from vflens.experiments.sweeps.sweep_file import load_sweep

    asked, loaded = gate(fail_if, fail_if_beats_blind, junit), load_sweep(file)
    check_table(table)
    of = None if part is None else Share.read(part)
    asked.check_columns(lambda: column_names(loaded))
    loaded = loaded.within(asked.tolerance)
    check_writable(out.absolute())
    command = f"vflens sweep {file} --out {out}"
    with Watched(watch) as page:
        with CellBar(loaded.name) as bar:

            def progress(done: int, total: int) -> None:
                if watch:
                    page.show(pool.folder)
                bar(done, total)

            pool = Pool(out / f".{loaded.name}", jobs, backend, progress)  # type: ignore[arg-type]  # checked there
            facts = run_sweep(loaded, pool, out, command) if of is None else run_part(loaded, pool, of)
        judged = asked.judged(lambda: _evidence(facts)) if of is None else Judged(())
        facts |= write_table(table, lambda: _evidence(facts)) if of is None else {}
        text = _swept if of is None else partial(_part, command=command)
        emit(json, {**facts, **judged.json}, lambda: f"{text(facts)}{judged.text}")
    judged.enforce()


def _evidence(facts: Document) -> Sequence[Findings]:
    """What a finished sweep says of thresholds."""
    from vflens.experiments.evidence.sources import of_sweep, refused_in
    from vflens.experiments.sweeps.sweep_page import UNDEFENDED
    from vflens.storage.arrow import parquet_table

    table = parquet_table(Path(facts["data"]))
    return of_sweep(table.to_pylist(), UNDEFENDED, refused_in(table) or ())


def _part(facts: Document, command: str) -> str:
    """What a part did, and what is left."""
    done = f"{facts['finished']} of {facts['cells']} federations are there"
    own = f"part {facts['part']}: {facts['part_cells']} federations; {done}"
    return f"{own}\nwhen all parts are done: {command}"


def _swept(facts: Document) -> str:
    caveat = [f"{facts['caveat']}."] if facts["caveat"] else []
    refused = [f"note: {sentence}" for sentence in [*caveat, *facts["refused"]]]
    loud = [f"THEORY AND MEASUREMENT DISAGREE: {alarm}" for alarm in facts["theory_disagreements"]]
    return "\n".join(
        [f"{facts['cells']} federations", *loud, *refused, f"data: {facts['data']}", f"page: {facts['page']}"]
    )


def _summary(facts: Document) -> str:
    from vflens.cli.screen.result_tables import fitting_tables

    notes = [f"note: {note}" for note in facts["notes"]]
    tables = [
        part for t in facts["tables"] for part in fitting_tables(t["title"], t["heads"], t["rows"], width())
    ]
    return "\n".join(
        [
            facts["title"],
            *([plain(*tables).rstrip()] if tables else []),
            *notes,
            f"data: {facts['data']} ({counted(facts['rows'], 'row')})",
            f"page: {facts['page']}",
        ]
    )
