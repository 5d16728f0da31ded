"""Writes ``docs/scoreboard.md``, and all results as ``docs/scoreboard.parquet``.

A call runs what that file and the folder ``.scoreboard`` lack. Ctrl-C writes what is there; the next call
goes on, in another checkout too.
"""

from __future__ import annotations

import argparse
import shutil
from contextlib import suppress
from pathlib import Path

from vflens.cli.progress import CellBar
from vflens.datasets._resolve import dataset
from vflens.errors import DataError
from vflens.experiments.scoreboard.cells import kept, missing, scored
from vflens.experiments.scoreboard.grid import DATA, ScoreboardGrid
from vflens.experiments.scoreboard.page import page
from vflens.experiments.sweeps.pool import Pool, write_rows
from vflens.storage.files import write_whole

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs/scoreboard.parquet"


def absent() -> dict[str, str]:
    """The data sets that cannot be read here, and why."""
    found = {}
    for name in DATA:
        try:
            dataset(name, {}).prepared()
        except DataError as error:
            found[name] = str(error)
    return found


def main() -> None:
    """Run what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--as-is", action="store_true", help="run nothing: write the page of what is there")
    given = parser.parse_args()
    missing_data = absent()
    grid = ScoreboardGrid(data=[name for name in DATA if name not in missing_data])
    with CellBar("scoreboard") as bar:
        pool = Pool(ROOT / ".scoreboard", given.jobs, progress=bar)
        if RESULTS.exists():
            pool.folder.mkdir(exist_ok=True)
            shutil.copy(RESULTS, pool.folder)
        if not given.as_is:
            with suppress(KeyboardInterrupt):
                scored(grid, pool)
    rows = kept(grid, pool)
    write_rows(RESULTS, rows)
    text = page(ScoreboardGrid(), rows, missing(grid, pool), missing_data)
    write_whole(ROOT / "docs/scoreboard.md", text.encode(), remedy="another checkout")


if __name__ == "__main__":
    main()
