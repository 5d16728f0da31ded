"""``vflens watch``: a live page on run folders."""

from __future__ import annotations

import atexit
import importlib.util
import os
import sys
import tempfile
import webbrowser
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vflens.cli.output import Json, emit
from vflens.errors import ConfigError, DataError, install_extra

if TYPE_CHECKING:
    from vflens.experiments.watch.app import LivePage


def watch(
    folders: Annotated[
        list[Path],
        typer.Argument(help="run folders, folders of parties, a folder of experiments, or a sweep's"),
    ],
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="a port of 127.0.0.1, as for a tunnel; default: a free one")
    ] = 0,
    json: Json = False,
) -> None:
    """Show runs while they go, and afterwards, on a page of 127.0.0.1; Ctrl-C ends it.

    The page reads the given folders and changes nothing. Its address serves once, for one browser.

    Example: vflens watch runs/digits
    """
    check_extra()
    from vflens.experiments.watch.server import serve

    serve(_page(folders), announced(json=json), port)


def announced(*, json: bool) -> Callable[[str], None]:
    """What prints the address of a page, and opens it from a terminal."""

    def announce(address: str) -> None:
        emit(json, {"address": address}, lambda: f"{address}\nCtrl-C ends this page.")
        sys.stdout.flush()
        if sys.stdout.isatty():
            open_browser(address)

    return announce


def _page(folders: Sequence[Path]) -> LivePage:
    """The page of the sweep in the only folder, an index of all runs under it, else the page of the runs in
    all.

    Raises:
        ConfigError, DataError: they hold neither.
    """
    from vflens.experiments.watch.index import IndexPage, holds_many
    from vflens.experiments.watch.page import RunsPage
    from vflens.experiments.watch.sweep import SweepPage, sweeps_in

    if len(folders) == 1 and sweeps_in(folders[0]):
        return SweepPage(folders[0])
    if len(folders) == 1 and holds_many(folders[0]):
        return IndexPage(folders[0])
    try:
        return RunsPage(folders)
    except DataError as error:
        ended = next((f / "sweep.html" for f in folders if (f / "sweep.html").is_file()), None)
        if ended is None:
            raise
        raise ConfigError(f"the sweep in {ended.parent} has ended: open {ended}") from error


def check_extra() -> None:
    """Refuse a live page without its libraries.

    Raises:
        ConfigError: names the command that installs them.
    """
    missing = [name for name in ("starlette", "uvicorn") if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(f"a live page needs {' and '.join(missing)}: {install_extra('watch')}")


def open_browser(address: str) -> None:
    """Open ``address`` where the machine has a browser with windows; one in the terminal would cover it.

    Every user reads the command line of a browser, so it gets a file of the owner's that leads there.
    """
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or sys.platform == "darwin"):
        return
    from vflens.storage.private import write_private

    folder = tempfile.TemporaryDirectory(prefix="vflens-watch-")
    atexit.register(folder.cleanup)  # a browser may read the file long after it was asked to
    file = Path(folder.name) / "watch.html"
    write_private(file, f'<meta http-equiv="refresh" content="0;url={escape(address)}">')
    webbrowser.open(file.as_uri())
