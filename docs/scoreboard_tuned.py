"""Tries the settings of attacks, and runs the best of them: rows beside the default ones."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial

from vflens.experiments.scoreboard.cells import by_key, measured
from vflens.experiments.scoreboard.grid import FEDERATIONS, UNDEFENDED, Place, ScoreboardGrid
from vflens.experiments.scoreboard.keys import Keyed, with_keys
from vflens.experiments.scoreboard.tuned import GRIDS
from vflens.experiments.scoreboard.verdicts import over_seeds
from vflens.experiments.sweeps.pool import Cell, Pool, Rows
from vflens.numerics.measures.intervals import least_first

TUNING_SEEDS = (101, 102, 103)
TUNED = "tuned"  # the label of the row with the chosen settings; those of trials are numbers


def tuned(grid: ScoreboardGrid, pool: Pool) -> Rows:
    """The rows of all trials, and of chosen settings on the seeds of ``grid``; the missing ones are run."""
    with pool.alone(), tempfile.TemporaryDirectory(prefix="vflens-scoreboard-") as scratch:
        tried = _filled(pool, scratch, [of for section in grid.sections() for of in _trials(*section)])
        finals = [of for chosen in choices(tried) for of in _finals(grid, chosen)]
        return [*tried, *_filled(pool, scratch, finals)]


def _trials(federation: str, data: str) -> Iterator[tuple[Place, Keyed]]:
    """Each attack in a run of its own, for its seconds."""
    for attack, settings in GRIDS.items():
        own = FEDERATIONS[federation].attack(attack, data)
        for seed in TUNING_SEEDS if own else ():
            place = Place(data, federation, UNDEFENDED, seed)
            tables = [{**(own or {}), **one, "name": f"{attack}:{i}"} for i, one in enumerate(settings)]
            yield place, with_keys(place, {table["name"]: table for table in tables})


def _finals(grid: ScoreboardGrid, chosen: tuple[str, str, str, int]) -> Iterator[tuple[Place, Keyed]]:
    federation, data, attack, best = chosen
    own = FEDERATIONS[federation].attack(attack, data)
    for seed in range(1, grid.seeds + 1):
        place, name = Place(data, federation, UNDEFENDED, seed), f"{attack}:{TUNED}"
        yield place, with_keys(place, {name: {**(own or {}), **GRIDS[attack][best], "name": name}})


def _filled(pool: Pool, scratch: str, wanted: Sequence[tuple[Place, Keyed]]) -> Rows:
    """The rows of ``wanted``, of which the missing ones are run."""
    have = by_key(pool.folder)
    left = [one for one in wanted if any(key not in have for key, _ in one[1].values())]
    cells = [Cell({"keys": [key for key, _ in one[1].values()]}, one) for one in left]
    pool.run(partial(_timed, scratch=scratch), cells)
    have = by_key(pool.folder)
    return [row for _, of in wanted for key, _ in of.values() for row in have.get(key, ())]


def _timed(place: Place, attacks: Keyed, *, scratch: str) -> Rows:
    start = time.process_time()
    rows = measured(place, attacks, scratch=scratch)
    return [{**row, "seconds": time.process_time() - start} for row in rows]


def choices(rows: Rows) -> Iterator[tuple[str, str, str, int]]:
    """Federation, data, attack and the number of its best settings, by the trials among ``rows``."""
    trials: dict[tuple[str, str, str], dict[int, Rows]] = {}
    for row in rows:
        name, _, label = row["attack"].partition(":")
        if row["seed"] in TUNING_SEEDS and row.get("blind") is not None:
            of = trials.setdefault((row["federation"], row["data"], name), {})
            of.setdefault(int(label), []).append(row)
    for place, of in trials.items():
        found = {number: over_seeds(own) for number, own in sorted(of.items())}
        errors = {number: least_first(one.mean) for number, one in found.items() if one is not None}
        yield *place, min(errors, key=lambda number: errors[number])
