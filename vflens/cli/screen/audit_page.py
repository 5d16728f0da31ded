"""``vflens audit --serve``: the audit's page for people without a terminal."""

from collections.abc import Collection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from vflens.cli.decide.planned_flags import is_typed
from vflens.cli.watch import announced, check_extra
from vflens.errors import ConfigError

Serve = Annotated[
    bool, typer.Option("--serve", help="on a page of 127.0.0.1: choose a file there; Ctrl-C ends it")
]
Port = Annotated[
    int,
    typer.Option(
        min=0, max=65535, help="with --serve: a port of 127.0.0.1, as for a tunnel; default: a free one"
    ),
]
_OF_THE_PAGE = ("serve", "port", "json")


def serve_audit(given: typer.Context, *, serve: bool, port: int, json: bool) -> None:
    """Serve the page until it is ended; the table and what was computed are removed then.

    Args:
        given: what was typed.
        serve: whether the page is asked for.
        port: 0 means a free one.
        json: print its address as JSON.

    Raises:
        ConfigError: without ``serve``; another option is given, a library is missing, or the port is taken.
    """
    if port and not serve:
        raise ConfigError("--port is that of the page: give --serve too")
    if not serve:
        raise ConfigError(
            "SOURCE is missing: give your .csv or .parquet, a .toml that describes it, a data set's name or "
            "your run folder, or --serve for a page"
        )
    check_extra()
    refuse_others(given, _OF_THE_PAGE, "--serve asks on its page")
    from vflens.experiments.watch.own_audit import OwnAudit
    from vflens.experiments.watch.own_audit_app import audit_app
    from vflens.experiments.watch.server import serve_app

    with TemporaryDirectory(prefix="vflens-audit-") as folder:  # of mode 700
        own = OwnAudit(Path(folder))
        serve_app(lambda access, ends: audit_app(own, access), announced(json=json), port, takes=True)


def refuse_others(given: typer.Context, allowed: Collection[str], why: str) -> None:
    """Refuse what was typed beside the parameters of ``allowed``.

    Raises:
        ConfigError: naming the first of them.
    """
    typed = [p for p in given.command.params if is_typed(given, p.name or "")]
    other = next((p for p in typed if p.name not in allowed), None)
    if other is not None:
        what = repr(given.params[other.name]) if other.name == "source" else other.opts[0]
        raise ConfigError(f"{why}: leave out {what}")
