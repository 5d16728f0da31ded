"""Flags that a plan in the table's description replaces: they are hidden, and work until the next release."""

from collections.abc import Sequence
from pathlib import Path

import typer

from vflens.cli.output import note
from vflens.types import Document


def is_typed(given: typer.Context, name: str) -> bool:
    """Whether the parameter ``name`` is on the command line."""
    return getattr(given.get_parameter_source(name), "name", "") == "COMMANDLINE"


def typed(given: typer.Context, names: Sequence[str]) -> Document:
    """The parameters of ``names`` that are on the command line, with their values."""
    return {name: given.params[name] for name in names if is_typed(given, name)}


def note_replaced(given: typer.Context, table: str) -> None:
    """Say once which hidden flags were typed, and that ``[table]`` of a description has them."""
    hidden = [
        p for p in given.command.params if getattr(p, "hidden", False) and is_typed(given, p.name or "")
    ]
    if hidden:
        flags = ", ".join(p.opts[0] for p in hidden)
        note(
            f"{flags}: version 0.4 reads this only from [{table}] of a description, which `vflens check "
            "TABLE --write own.toml` begins"
        )


def check_plans(file: Path) -> None:
    """Refuse a plan in the description ``file`` with a setting that is unknown or out of its range."""
    from vflens.config import plan_table

    if plan_table(file, "audit"):
        from vflens.experiments.audit.given import planned

        planned(file)
    if plan_table(file, "release"):
        from vflens.experiments.release.planned import check_plan

        check_plan(file)
