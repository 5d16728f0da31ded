"""``vflens watch``: a live page on run folders."""

from __future__ import annotations

import importlib.util
import os
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from vflens.cli.output import Json, emit
from vflens.errors import ConfigError


def watch(
    folders: Annotated[list[Path], typer.Argument(help="run folders, folders of parties, or a sweep's")],
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
    from vflens.experiments.watch.page import RunsPage
    from vflens.experiments.watch.server import serve
    from vflens.experiments.watch.sweep import SweepPage, holds_sweep

    def announce(address: str) -> None:
        emit(json, {"address": address}, lambda: f"{address}\nCtrl-C ends this page.")
        sys.stdout.flush()
        if sys.stdout.isatty():
            open_browser(address)

    alone = len(folders) == 1 and holds_sweep(folders[0])
    if not alone and (ended := folders[0] / "sweep.html").is_file():
        raise ConfigError(f"the sweep in {folders[0]} has ended: open {ended}")
    serve(SweepPage(folders[0]) if alone else RunsPage(folders), announce, port)


def check_extra() -> None:
    """Refuse a live page without its libraries.

    Raises:
        ConfigError: names the command that installs them.
    """
    missing = [name for name in ("starlette", "uvicorn") if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(f"a live page needs {' and '.join(missing)}: pip install 'vflens[watch]'")


def open_browser(address: str) -> None:
    """Open ``address`` where the machine has a browser with windows; one in the terminal would cover it."""
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or sys.platform == "darwin":
        webbrowser.open(address)
