"""``vflens reproduce``: the papers' figures, as data and as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cli.output import Json, emit

Jobs = Annotated[int, typer.Option(help="processes at a time", min=1)]
BackendName = Annotated[str, typer.Option(help="loky: processes here; ray or dask: a cluster")]


def add_to(app: typer.Typer) -> None:
    """Register the command."""

    @app.command()
    def reproduce(
        *,
        name: Annotated[str, typer.Argument(help="a figure, such as rvg-fig4; `list` lists them")],
        out: Annotated[Path, typer.Option(help="folder for NAME.parquet and NAME.html")] = Path("figures"),
        quick: Annotated[bool, typer.Option("--quick", help="coarse: few sizes, windows and epochs")] = False,
        seed: Annotated[int, typer.Option(help="decides every draw", min=0)] = 0,
        jobs: Jobs = 1,
        backend: BackendName = "loky",
        json: Json = False,
    ) -> None:
        """Make a figure of the papers: its data as parquet, its plots as one page. Interrupted, it resumes.

        Example: vflens reproduce rvg-fig4 --quick
        """
        from cli.progress import CellBar
        from experiments.cells import Pool
        from experiments.figures import Options, figures
        from experiments.figures import reproduce as make

        if name == "list":
            found = {f.name: f.title for f in figures().values()}
            emit(json, found, lambda: "\n".join(f"{n:<10} {title}" for n, title in found.items()))
            return
        with CellBar(name) as bar:
            pool = Pool(out / f".{name}", jobs, backend, bar)  # type: ignore[arg-type]  # checked there
            facts = make(name, Options(pool, quick, seed), out)
        emit(json, facts, lambda: _summary(facts))


def _summary(facts: dict[str, Any]) -> str:
    notes = [f"note: {note}" for note in facts["notes"]]
    return "\n".join(
        [facts["title"], *notes, f"data: {facts['data']} ({facts['rows']} rows)", f"page: {facts['page']}"]
    )
