"""``vflens datasets``: list, show, split."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vflens.cli.output import Json, emit
from vflens.registry import DATASETS
from vflens.types import Document
from vflens.words import counted

if TYPE_CHECKING:
    from vflens.tables.table import Table
    from vflens.types import ColumnInfo

app = typer.Typer(no_args_is_help=True, help="Data sets: list them, look at one, deal one to parties.")


@app.command("list")
def list_datasets(json: Json = False) -> None:
    """List the data sets for experiments.

    Example: vflens datasets list
    """
    found = {name: DATASETS.summary(name) for name in DATASETS.names()}
    emit(json, found, lambda: "\n".join(f"{name:<14} {text}" for name, text in found.items()))


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="a name of `vflens datasets list`, or openml:ID")],
    recipe: Annotated[
        str, typer.Option(help="clean, paper or authors: how its columns are prepared")
    ] = "clean",
    json: Json = False,
) -> None:
    """Load a data set and show its rows, columns, classes and split.

    Example: vflens datasets show digits --recipe paper
    """
    from vflens.datasets._resolve import dataset

    found = dataset(name, {"recipe": recipe})
    table = found.prepared()
    facts = {"name": name, "recipe": recipe, "caveat": found.caveat, **_facts(table)}
    emit(json, facts, lambda: _shown(facts, table.columns))


@app.command()
def split(
    file: Annotated[Path, typer.Argument(help="an experiment (TOML)")],
    out: Annotated[Path, typer.Option(help="folder that gets one folder per party")],
    scenario: Annotated[
        str | None, typer.Option(help="which scenario's defences to write; default: the first")
    ] = None,
    json: Json = False,
) -> None:
    """Deal an experiment: one folder per party with its own table, secrets and configuration.

    Example: vflens datasets split examples/demo.toml --out dealt
    """
    from vflens.errors import ConfigError
    from vflens.experiments.run.dealer import deal_tables, write_parties
    from vflens.experiments.run.loading import load_any

    experiment = load_any(file)
    titles = {s.name: s for s in experiment.scenarios}
    chosen = titles.get(scenario or experiment.scenarios[0].name)
    if chosen is None:
        raise ConfigError(f"--scenario {scenario!r} is none of {', '.join(titles)}: name one of them")
    written = write_parties(experiment, chosen, deal_tables(experiment), out)
    roles = experiment.roles()
    emit(
        json,
        {party: str(path) for party, path in written.items()},
        lambda: "\n".join(f"vflens serve {roles[party]} --config {path}" for party, path in written.items()),
    )


def _facts(table: Table) -> Document:
    """Rows, columns, rows per class and per part of ``table``."""
    import numpy as np

    if table.label is not None:
        labelled: Document = {
            "label": {"name": table.label.name, "bounds": [table.label.low, table.label.high]}
        }
    else:
        labels = table.labels if table.labels is not None else np.zeros(0, int)
        counts = np.bincount(labels, minlength=len(table.class_names)).tolist()
        labelled = {"classes": dict(zip(table.class_names, counts, strict=True))}
    split = table.split
    return {
        "rows": len(table.ids),
        "columns": [c.name for c in table.columns],
        **labelled,
        "split": None
        if split is None
        else {"train": int((split == 0).sum()), "predict": int((split == 1).sum())},
    }


def _shown(facts: Document, columns: Sequence[ColumnInfo]) -> str:
    lines = [
        f"{facts['name']}: {counted(facts['rows'], 'row')}, {counted(len(columns), 'column')}",
        *filter(None, [facts["caveat"]]),
        _labelled(facts),
        f"split: {facts['split'] or 'drawn by the dealer'}",
        *(f"  {c.name:<24} {_bounds(c.low, c.high)}{_alphabet(c.alphabet)}" for c in columns[:64]),
    ]
    return "\n".join(lines + ([f"  … and {len(columns) - 64} more"] if len(columns) > 64 else []))


def _labelled(facts: Document) -> str:
    if "label" in facts:
        return f"label: {facts['label']['name']}, a number, {_bounds(*facts['label']['bounds'])}"
    return f"classes: {', '.join(f'{k} ({v})' for k, v in facts['classes'].items())}"


def _bounds(low: float | None, high: float | None) -> str:
    return "bounds not declared" if low is None else f"[{low:g}, {high:g}]"


def _alphabet(alphabet: tuple[float, ...] | None) -> str:
    return f", {counted(len(alphabet), 'value')}" if alphabet else ""
