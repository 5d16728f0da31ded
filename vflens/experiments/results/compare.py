"""Two runs side by side: the differences in configuration and in figures.

An attack's error appears with the blind error of its own run; without one it is left out, as in all reports.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vflens.errors import ConfigError
from vflens.experiments.outcome.table import Pairs, differences, sides
from vflens.experiments.outcome.words import number, rows_of
from vflens.experiments.results.record import RecordedRun, read_run
from vflens.storage.metrics import Name
from vflens.types import Document, Facts

if TYPE_CHECKING:
    from rich.table import Table

_SECRET = re.compile(r"(^|_)(seed|token|secret|password|key)s?(_|$)")
_PLACES = {"run", "out", "address"}  # names and places change no result, and differ in almost every pair
_MASK = "(secret)"
_ATTACK_METRICS = {
    *(Name.MSE, Name.MSE_STDERR, Name.BLIND_MSE, Name.UNUSABLE, Name.MATCHED_MSE, Name.BLIND_MATCHED_MSE),
    *(Name.COLUMN_MSE, Name.COLUMN_BLIND_MSE, Name.COLUMN_ENTROPY, Name.COLUMN_CONDITIONAL_ENTROPY),
    *(Name.COLUMN_UNIT, Name.COLUMN_RIGHT, Name.COLUMN_BLIND_RIGHT),
}
_TIMES = {Name.TRAIN_SECONDS, Name.PREDICT_SECONDS, Name.STEPS_PER_SECOND}  # times differ in every two runs
_METRIC_KEY = ("party", "metric", "attack", "target", "scored_set", "column", "detail", "rows", "step")
_ERROR_KEY = ("attack", "target", "scored_set", "rows", "column")


def compare(run_a: Path, run_b: Path) -> Document:
    """The differences between two runs, each the folder of a run or of one of its parties.

    Returns:
        ``a``, ``b``: the runs' names. ``only_a``, ``only_b``: parties with a folder on one side only; all
            else covers the parties with both. ``configuration``: ``{party, key, a, b}`` for every flattened
            key that differs: secrets masked, None for a missing key, without names and addresses. ``errors``:
            ``{attack, target, scored_set, rows, column, a, b, blind_a, blind_b, difference}`` of
        each attack's last milestone, as a whole (``column`` "") and column by column. ``figures``: ``{party,
        metric, attack, target, scored_set, column, detail, rows, step, a, b, difference}`` of what else was
        measured of an attack or a blind guess, such as SSIM; of a matrix the means of its cells. ``metrics``:
        the same of the runs themselves.
        Equal figures are left out; ``difference`` is b − a, None if a side lacks the figure. Infinite figures
        stay; ``vflens compare --json`` writes null for them. ``equal``: whether only times differ.

    Raises:
        ConfigError: a folder holds several runs, or they have no party in common.
        DataError: a folder is missing, holds no run, or is damaged.
    """
    a, b = read_run(run_a), read_run(run_b)
    only_a, only_b = _names(a) - _names(b), _names(b) - _names(a)
    if only_a == _names(a):
        raise ConfigError(
            f"{run_a} holds {', '.join(sorted(only_a))} and {run_b} {', '.join(sorted(only_b))}: give two "
            "folders that hold the same party"
        )
    a, b = _without(a, only_a), _without(b, only_b)
    others, settings = list(_metrics(a, b)), list(_configuration(a, b))
    errors = list(differences(_final_errors(a), _final_errors(b), _ERROR_KEY))
    of_attacks, of_runs = ([m for m in others if bool(m["attack"]) is own] for own in (True, False))
    found = {"configuration": settings, "errors": errors, "figures": of_attacks, "metrics": of_runs}
    equal = not (settings or errors or any(m["metric"] not in _TIMES for m in others))
    alone = {"only_a": sorted(only_a), "only_b": sorted(only_b)}
    return {"a": a.name, "b": b.name, **alone, **found, "equal": equal}


def table(comparison: Facts) -> Table:
    """The result of :func:`compare` for the terminal, without markup: settings, errors of targets, other
    figures of attacks, then those of the runs.
    """
    from rich.table import Table

    grid = Table("what differs", *(f"{side}: {comparison[side]}" for side in "ab"), "b − a")
    for c in comparison["configuration"]:
        values = ("–" if c[side] is None else str(c[side]) for side in "ab")
        grid.add_row(f"{c['party']}: {c['key']}", *values, "")
    grid.add_section()
    for e in (e for e in comparison["errors"] if not e["column"]):
        what = f"MSE of {e['attack']} on {e['target']} ({e['rows']} {rows_of(e['scored_set'])})"
        both = (f"{number(e[side])} (blind {number(e[f'blind_{side}'])})" for side in "ab")
        grid.add_row(what, *both, number(e["difference"]))
    for kind in ("figures", "metrics"):
        grid.add_section()
        for m in comparison[kind]:
            what = " ".join(str(m[k]) for k in _METRIC_KEY if m[k])
            grid.add_row(what, *(number(m[k]) for k in ("a", "b", "difference")))
    alone = (f"Only {side} holds: {', '.join(n)}." for side in "ab" if (n := comparison[f"only_{side}"]))
    equal = ["Equal: nothing differs but times."] if comparison["equal"] else []
    grid.caption = " ".join([*alone, *equal]) or None
    return grid


def masked(config: Facts) -> Document:
    """A configuration without secrets: seeds, tokens, keys and passwords are replaced, at any depth."""
    return {k: _MASK if _is_secret(k) else _masked_value(v) for k, v in config.items()}


def _masked_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return masked(value)
    return [_masked_value(v) for v in value] if isinstance(value, list) else value


@lru_cache(maxsize=1 << 14)  # clients have their columns in common
def _is_secret(key: str) -> bool:
    return _SECRET.search(key.lower().replace("-", "_")) is not None


def _names(run: RecordedRun) -> set[str]:
    return {p.name for p in run.parties}


def _without(run: RecordedRun, names: set[str]) -> RecordedRun:
    return replace(run, parties=tuple(p for p in run.parties if p.name not in names))


def _configuration(a: RecordedRun, b: RecordedRun) -> Iterator[Document]:
    """Compare values in the clear, show them masked: different seeds are shown as such."""
    sides = [{(p.name, k): v for p in run.parties for k, v in _flat(p.config)} for run in (a, b)]
    for party, key in dict.fromkeys([*sides[0], *sides[1]]):
        one, other = (side.get((party, key)) for side in sides)
        if one != other:
            secret = any(_is_secret(part) for part in re.split(r"\.|\[\d+\]", key))
            shown = [_MASK if secret and value is not None else value for value in (one, other)]
            yield {"party": party, "key": key, "a": shown[0], "b": shown[1]}


def _flat(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """``("training.epochs", 5)``, ``("defenses[0].name", "rounding")``, …"""
    if isinstance(value, Mapping):
        for name, inner in ((n, i) for n, i in value.items() if n not in _PLACES):
            yield from _flat(inner, f"{key}.{name}" if key else name)
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from _flat(inner, f"{key}[{i}]")
    else:
        yield key, value


def _final_errors(run: RecordedRun) -> Pairs:
    found: dict[tuple[Any, ...], tuple[float, float]] = {}
    for r in run.results:
        key = (r.attack, r.target, r.scored_set, r.rows)
        found[(*key, "")] = r.mse, r.blind
        found |= {(*key, c.column): (c.mse, c.blind) for c in run.columns(r)}
    return found


def _metrics(a: RecordedRun, b: RecordedRun) -> Iterator[Document]:
    one, other = _other_metrics(a), _other_metrics(b)
    for key in dict.fromkeys([*one, *other]):
        mine, theirs = one.get(key), other.get(key)
        if mine is None or theirs is None or not np.array_equal(mine, theirs, equal_nan=True):
            both = sides(mine[0] if mine else None, theirs[0] if theirs else None)
            yield {**dict(zip(_METRIC_KEY, key, strict=True)), **both}


def _other_metrics(run: RecordedRun) -> dict[tuple[str | int, ...], tuple[float, ...]]:
    """Key → the figure, then the numbers of which it is the mean."""
    return {
        (p.name, m.name, *(getattr(m, k) for k in _METRIC_KEY[2:])): (m.value, *m.values)
        for p in run.parties
        for m in p.metrics
        if m.name not in _ATTACK_METRICS and not m.name.startswith("theory_")
    }
