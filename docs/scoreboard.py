"""Writes ``docs/scoreboard.md``, and all results as ``scoreboard.parquet`` of the package.

A call runs what that file and the folder ``.scoreboard`` lack; with ``--only`` the rest of the file stays.
Ctrl-C writes what is there; the next call goes on, in another checkout too.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from scoreboard_page import page
from scoreboard_rows import described, renewed
from scoreboard_tuned import tuned

from vflens.cli.screen.progress import CellBar
from vflens.datasets._resolve import dataset
from vflens.errors import DataError
from vflens.experiments.scoreboard.cells import kept, scored
from vflens.experiments.scoreboard.changes import changes, said
from vflens.experiments.scoreboard.grid import DATA, FEDERATIONS, ScoreboardGrid
from vflens.experiments.scoreboard.kinds import PUBLISHED
from vflens.experiments.scoreboard.tuned import is_apart
from vflens.experiments.sweeps.pool import Pool, Rows, write_rows
from vflens.storage.arrow import parquet_rows
from vflens.storage.files import write_whole
from vflens.types import Facts

ROOT = Path(__file__).parents[1]
RESULTS = PUBLISHED
_CHANGES = """\
# What changed on the scoreboard

Since commit {since}, by a comparison of both versions of [scoreboard.parquet](scoreboard.parquet) under
today's rules: `docs/scoreboard.py --as-is --since {since}` writes this page, `vflens scoreboard --since FILE`
compares with any earlier file. A verdict is listed where it, or the attack that decides it, is another one.

{sentences}
"""


def readable() -> list[str]:
    """The data sets that can be read here; of the others the reason goes to the terminal."""
    found = []
    for name in DATA:
        try:
            dataset(name, {}).prepared()
            found.append(name)
        except DataError as error:
            print(f"{name}: not run, {error}", file=sys.stderr)
    return found


def run(jobs: int, only: Sequence[str], federations: Sequence[str]) -> None:
    """Run what is missing, ``only`` of these plug-ins; an interruption keeps what is there."""
    grid = ScoreboardGrid(data=readable(), federations=federations)
    with CellBar("scoreboard") as bar:
        pool = Pool(ROOT / ".scoreboard", jobs, progress=bar)
        if RESULTS.exists():
            pool.folder.mkdir(exist_ok=True)
            shutil.copy(RESULTS, pool.folder)
        with suppress(KeyboardInterrupt):
            scored(grid, pool, only)
    rows, old = kept(grid, pool, only), parquet_rows(RESULTS)
    write_rows(RESULTS, renewed(old, rows) if only else [*rows, *filter(is_apart, old)])


def gather() -> None:
    """Take into the file what calls that were interrupted left in the folder."""
    rows = kept(ScoreboardGrid(data=readable()), Pool(ROOT / ".scoreboard"))
    write_rows(RESULTS, renewed(parquet_rows(RESULTS), rows))


def tune(jobs: int, data: Sequence[str], federations: Sequence[str]) -> None:
    """Try the settings of attacks that have several, and run the best of them."""
    with CellBar("settings") as bar:
        pool = Pool(ROOT / ".scoreboard" / "tuned", jobs, progress=bar)
        rows = tuned(ScoreboardGrid(data=data, federations=federations), pool)
    write_rows(RESULTS, renewed(parquet_rows(RESULTS), rows))


def main() -> None:
    """Run what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument(
        "--as-is",
        action="store_true",
        help="run nothing: write the page, and into the file what is there and what its attacks estimate",
    )
    parser.add_argument("--since", help="a commit: write what changed since its results")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help="run these attacks, and behind these defences"
    )
    parser.add_argument(
        "--federations",
        nargs="+",
        default=tuple(FEDERATIONS),
        choices=FEDERATIONS,
        help="with --only and --tuned",
    )
    parser.add_argument(
        "--tuned",
        nargs="+",
        default=[],
        metavar="DATA",
        choices=DATA,
        help="try settings on these data alone",
    )
    given = parser.parse_args()
    if given.tuned:
        tune(given.jobs, given.tuned, given.federations)
    elif given.as_is:
        gather()
    else:
        run(given.jobs, given.only, given.federations)
    rows, records = described(parquet_rows(RESULTS)), recorded()
    write_rows(RESULTS, rows)
    _write("scoreboard.md", page(ScoreboardGrid(), rows, records))
    if given.since is not None:
        _write("scoreboard-changes.md", changed(given.since, rows))


def recorded() -> dict[str, Facts]:
    """What ``vflens reproduce`` printed, by command."""
    return {file.stem: json.loads(file.read_text()) for file in sorted(ROOT.glob("docs/reproduced/*.json"))}


def changed(since: str, rows: Rows) -> str:
    """The page on what changed since the commit ``since``."""
    shown = subprocess.run(
        ["git", "show", f"{since}:{RESULTS.relative_to(ROOT)}"], cwd=ROOT, capture_output=True, check=True
    )
    with tempfile.NamedTemporaryFile(suffix=".parquet") as old:
        Path(old.name).write_bytes(shown.stdout)
        found = changes(parquet_rows(Path(old.name)), rows, ScoreboardGrid())
    return _CHANGES.format(since=since, sentences=said(found))


def _write(name: str, text: str) -> None:
    write_whole(ROOT / "docs" / name, text.encode(), remedy="another checkout")


if __name__ == "__main__":
    main()
