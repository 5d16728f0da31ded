"""Runs the federations of a scoreboard and keeps the result of each attack by itself.

All attacks that only read share one run of a federation; one that sends has a run to itself. What a defence
costs is measured by runs of their own, without attacks, of more seeds and rows. A later call
runs those without a kept result only: a new attack costs its own time, not that of all others.
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from vflens.errors import ConfigError, VflensError
from vflens.experiments.pages.cost import use_of
from vflens.experiments.run.early import misplaced
from vflens.experiments.run.loading import experiment_kind
from vflens.experiments.run.run import begun
from vflens.experiments.scoreboard.grid import Place, ScoreboardGrid
from vflens.experiments.scoreboard.keys import COST, Keyed, experiment_of, keyed, sends
from vflens.experiments.sweeps.pool import Cell, Pool, Rows, write_rows
from vflens.experiments.sweeps.sweep import finished
from vflens.plugins.attack import means_only
from vflens.plugins.views.remembered import REMEMBERED
from vflens.storage.arrow import parquet_rows
from vflens.types import Document, Estimate, Phase

if TYPE_CHECKING:
    from vflens.experiments.results.record import RecordedRun


def scored(grid: ScoreboardGrid, pool: Pool, only: Collection[str] = ()) -> Rows:
    """The rows of all federations of ``grid``, of which the missing ones are run; ``only`` those of these
    attacks, and those behind these defences.

    Raises:
        VflensError: a data set is damaged, or a result cannot be kept.
    """
    with pool.alone(), tempfile.TemporaryDirectory(prefix="vflens-scoreboard-") as scratch:
        if asked := _earlier(grid, pool, only):
            _fill(asked, pool, scratch)
            if same := unchanged(grid, pool, only):
                write_rows(pool.folder / Cell({"same": sorted({row["key"] for row in same})}).file(), same)
        _fill(missing(grid, pool, only), pool, scratch)
    return kept(grid, pool, only)


def _fill(left: Mapping[Place, Keyed], pool: Pool, scratch: str) -> None:
    """Run the attacks ``left`` of each place."""
    cells = [
        Cell({"keys": [k for k, _ in shared.values()]}, (place, shared))
        for place, attacks in left.items()
        for shared in _runs_of(attacks)
    ]
    pool.run(partial(measured, scratch=scratch), cells)


def _earlier(grid: ScoreboardGrid, pool: Pool, only: Collection[str]) -> dict[Place, Keyed]:
    """What is :func:`missing` of the first seeds, of which earlier code has the results with the same
    settings.
    """
    have = {key.partition("-")[0] for key in by_key(pool.folder)}
    first = replace(grid, seeds=min(grid.seeds, 1), cost_seeds=min(grid.cost_seeds, 1))
    left = missing(first, pool, only).items()
    asked = {p: {n: one for n, one in of.items() if one[0].partition("-")[0] in have} for p, of in left}
    return {place: attacks for place, attacks in asked.items() if attacks}


def unchanged(grid: ScoreboardGrid, pool: Pool, only: Collection[str] = ()) -> Rows:
    """Kept rows of earlier code, under today's keys, where today's code gave those of the first seed again to
    the bit: one training and one view of each attack stand for its other seeds.
    """
    have, trusted, found = by_key(pool.folder), dict[tuple[Place, str], set[str]](), Rows()
    earlier: dict[str, list[str]] = {}
    for key in have:
        earlier.setdefault(key.partition("-")[0], []).append(key)
    for place, attacks in _wanted(grid, only).items():  # the first seed comes first
        for name, (key, _) in attacks.items():
            codes = trusted.setdefault((place._replace(seed=0), name), set())
            for old in earlier.get(key.partition("-")[0], ()):
                code = old.partition("-")[2]
                if key in have and _bits(have[key]) == _bits(have[old]):
                    codes.add(code)
                elif key not in have and code in codes:
                    found += [{**row, "key": key} for row in have[old]]
                    break
    return found


def _bits(rows: Rows) -> list[str]:
    """What ``rows`` say, without their keys and what a published file adds of their attacks."""
    added = {"key", "estimates", "needs"}
    figures = [{n: v for n, v in row.items() if n not in added and v is not None} for row in rows]
    return sorted(json.dumps(row, sort_keys=True) for row in figures)


def kept(grid: ScoreboardGrid, pool: Pool, only: Collection[str] = ()) -> Rows:
    """The rows of ``grid`` that are there already, in its order; one that two files have comes once."""
    have = by_key(pool.folder)
    return [row for of in _wanted(grid, only).values() for key, _ in of.values() for row in have.get(key, ())]


def missing(grid: ScoreboardGrid, pool: Pool, only: Collection[str] = ()) -> dict[Place, Keyed]:
    """The federations of ``grid`` in which attacks, or costs, have no kept result, and these."""
    have = by_key(pool.folder)
    wanted = _wanted(grid, only).items()
    left = {p: {name: one for name, one in of.items() if one[0] not in have} for p, of in wanted}
    return {place: attacks for place, attacks in left.items() if attacks}


def _wanted(grid: ScoreboardGrid, only: Collection[str] = ()) -> dict[Place, Keyed]:
    """Section by section: an interrupted scoreboard has some of them whole."""

    def chosen(place: Place, names: Sequence[str]) -> Keyed:
        whole = not only or place.defense in only
        return keyed(place, [name for name in names if whole or name in only])

    wanted: dict[Place, Keyed] = {}
    for section in grid.sections():
        wanted |= {place: chosen(place, grid.attacks) for place in grid.places(*section)}
        wanted |= {place: chosen(place, [COST]) for place in grid.cost_places(*section)}
    return wanted


def _runs_of(attacks: Keyed) -> Iterator[Keyed]:
    """``attacks`` by run: those that only read share one, each that sends changes the training of its own."""
    reading = {name: one for name, one in attacks.items() if not sends(name)}
    yield from [reading] if reading else []
    yield from ({name: one} for name, one in attacks.items() if sends(name))


def by_key(folder: Path) -> dict[str, Rows]:
    """Key → the rows of its result, from one of the files that have it.

    Raises:
        ConfigError: a file holds something else.
    """
    found: dict[str, Rows] = {}
    for file in sorted(folder.glob("*.parquet")):
        own: dict[str, Rows] = {}
        for row in _rows_of(file):
            own.setdefault(row["key"], []).append(row)
        found |= own
    return found


def _rows_of(file: Path) -> Rows:
    try:
        rows = parquet_rows(file)
    except (OSError, ValueError, ArithmeticError):
        rows = [{}]
    if not all(isinstance(row.get("key"), str) and "seed" in row for row in rows):
        raise ConfigError(f"{file} holds no results of a scoreboard: choose another folder, or remove it")
    return rows


def measured(place: Place, attacks: Keyed, *, scratch: str) -> Rows:
    """Run ``attacks`` in one federation; a row for each result, and one with a ``reason`` for each attack
    without a result.
    """
    seatless = _seatless(place, attacks)
    left = {name: one for name, one in attacks.items() if name not in seatless}
    remembered = REMEMBERED.set(_remembered(place.data, place.federation)[place.seed, place.sample])
    try:
        rows = _results(place, left, scratch) if left else []
    finally:
        REMEMBERED.reset(remembered)
    refused = all(row.get("refused") for row in rows)  # or nothing ran: then a seat is not asked either
    if seatless and refused and (whole := _refusal(place, scratch)):
        seatless = {name: {"reason": whole, "refused": True} for name in seatless}
    rows += [{"attack": name, **refusal} for name, refusal in seatless.items()]
    return [{**place._asdict(), "key": attacks[row["attack"]][0], **row} for row in rows]


@lru_cache(maxsize=1)  # a section at a time: its defences come one after the other
def _remembered(data: str, federation: str) -> defaultdict[tuple[int, int], dict[str, Estimate]]:
    """Seed and rows → what attacks made of views, so that the same view is not attacked again."""
    return defaultdict(dict)


def _seatless(place: Place, attacks: Keyed) -> dict[str, Document]:
    """Which of ``attacks`` no party of ``place`` can have, and why; none where one of them is wrongly set."""
    tables = [table for _, table in attacks.values() if table]
    settings = {**experiment_of(place.settings(), attacks), "attacks": tables}
    try:
        found = misplaced(experiment_kind(settings).model_validate(settings))
    except VflensError:
        return {}  # a run says which one
    return {name: {"reason": str(error), "refused": False} for name, error in found.items()}


def _refusal(place: Place, scratch: str) -> str | None:
    """Why ``place`` is refused before it runs; None if it is not."""
    settings = place.settings()
    with tempfile.TemporaryDirectory(dir=scratch) as home:
        try:
            dealt = begun(
                experiment_kind(settings).model_validate({**settings, "out": home}), in_process=True
            )
            next(dealt)
            dealt.close()
        except VflensError as error:
            return str(error)
    return None


def _results(place: Place, attacks: Keyed, scratch: str) -> Rows:
    """The rows of one run; where an attack ends it, those of each half, until it is alone."""
    try:
        return _run(place, attacks, scratch)
    except VflensError as error:
        if (whole := _failure(place, scratch)) is not None:
            return [{"attack": name, "reason": whole, "refused": True} for name in attacks]
        if len(attacks) == 1:
            return [{"attack": name, "reason": str(error), "refused": False} for name in attacks]
        names = list(attacks)
        halves = names[: len(names) // 2], names[len(names) // 2 :]
        return [row for half in halves for row in _results(place, {n: attacks[n] for n in half}, scratch)]


@lru_cache(maxsize=1)  # several attacks may fail, each alone
def _failure(place: Place, scratch: str) -> str | None:
    """Why ``place`` does not run without attacks; None if it does."""
    try:
        _run(place, {}, scratch)
    except VflensError as error:
        return str(error)
    return None


def _run(place: Place, attacks: Keyed, scratch: str) -> Rows:
    """The rows of one run, without place and key."""
    tables = [table for _, table in attacks.values() if table]
    with finished({**experiment_of(place.settings(), attacks), "attacks": tables}, scratch) as done:
        scores = (
            {**row, "granted": done.reads_grants(row["attack"], row["target"])}
            for row in _scores(done)
            if row["attack"] in attacks  # a run makes the guess from known rows unasked
        )
        rows = [*scores, *([_use(done)] if COST in attacks else [])]
        with_result = {row["attack"] for row in rows}
        reasons = {found.attack: found.reason for found in (*done.skipped, *done.failed)}
        rows += [
            {"attack": name, "reason": reasons.get(name, "it was not scored"), "refused": False}
            for name in attacks
            if name not in with_result
        ]
        return [{**row, "on_grants_only": done.protects_grants_alone} for row in rows]


def _use(done: RecordedRun) -> Document:
    """What the model is worth, and the active party's or clients' own."""
    measure, use = use_of(done.utility, done.n_classes)
    worth = use._asdict() if use else {"reason": "its use was not measured", "refused": False}
    return {"attack": COST, "measure": measure, "accuracy": done.utility.get("accuracy"), **worth}


def _scores(done: RecordedRun) -> Iterator[Document]:
    """What each attack found at each target: ``figure`` beside the blind guess's, in one unit."""
    for column in done.results:
        errors = {"measure": "MSE", "figure": column.mse, "blind": column.blind}
        if not means_only(column.attack):
            yield {"attack": column.attack, "target": column.target, "rows": column.scored_set, **errors}
    yield from _means(done)
    for (attack, target), r2 in done.explained.items():
        errors = {"measure": "R²", "figure": r2, "blind": 0.0}
        yield {"attack": attack, "target": target, "rows": "train", **errors}
    classes = done.n_classes
    for label in done.labels:
        # A ranking tells two classes apart where the share of right labels is that of the frequent class.
        by_rank = classes == 2 and label.auc is not None
        figure, blind = (label.auc, 0.5) if by_rank else (label.accuracy, label.blind)
        errors = {"measure": "AUC" if by_rank else "accuracy", "figure": figure, "blind": blind}
        place = {"attack": label.attack, "target": label.target, "rows": label.scored_set}
        yield {**place, **errors}
    for member in done.membership:
        errors = {"measure": "AUC", "figure": member.auc, "blind": member.blind}
        yield {"attack": member.attack, "target": member.target, "rows": "candidates", **errors}
    for site in (f for f in done.sites if f.scored_set == Phase.TRAIN):
        errors = {"measure": "accuracy", "figure": site.value, "blind": site.blind}
        yield {"attack": site.attack, "target": site.target, "rows": "candidates", **errors}


def _means(done: RecordedRun) -> Iterator[Document]:
    """How far means of columns lie from the truth, on average over columns: of attacks on nothing else."""
    found: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for m in done.asked_means:
        found.setdefault((m.attack, m.target, m.scored_set), []).append((m.value, m.blind))
    for (attack, target, rows), columns in found.items():
        figure, blind = map(fmean, zip(*columns, strict=True))
        errors = {"measure": "distance", "figure": figure, "blind": blind}
        yield {"attack": attack, "target": target, "rows": rows, **errors}
