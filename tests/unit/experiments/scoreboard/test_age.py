"""How old the published rows are, as both pages say it; and twenty random cells of them, run again."""

from __future__ import annotations

import html
import random
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import pytest
from scoreboard_page import page
from threadpoolctl import threadpool_info

from vflens.experiments.scoreboard.cells import measured
from vflens.experiments.scoreboard.explorer import explored
from vflens.experiments.scoreboard.grid import (
    CLEAR,
    MOST_WORK,
    NUMBER,
    PROTECTED,
    UNDEFENDED,
    Place,
    ScoreboardGrid,
)
from vflens.experiments.scoreboard.keys import COST, keyed
from vflens.experiments.scoreboard.kinds import PUBLISHED
from vflens.experiments.scoreboard.tuned import age, is_apart
from vflens.experiments.sweeps.pool import Rows
from vflens.plugins.attack import installed_attack
from vflens.storage.arrow import parquet_rows
from vflens.types import Document

Drawn: TypeAlias = tuple[Place, str]
PLACE = Place("digits", "vertical-lr", UNDEFENDED, 1, 200)
#: The models of numpy; networks compute with kernels of torch.
FEDERATIONS = ("vertical-lr", PROTECTED, CLEAR, NUMBER)


def test_rows_of_todays_code_are_counted_on_both_pages(tmp_path: Path) -> None:
    found = measured(PLACE, keyed(PLACE, ["half", "lmmse"]), scratch=str(tmp_path))
    rows = [{**row, "key": "old"} if row["attack"] == "lmmse" else row for row in found]
    today = sum(row["attack"] == "half" for row in rows)
    share = f"{today} of {len(rows)} rows ({100 * today / len(rows):.0f} %)"
    text = f"{share} have the key of today's settings and code"
    assert 0 < today < len(rows)
    assert age(rows).startswith(text)
    assert text in " ".join(page(ScoreboardGrid(("digits",), ("vertical-lr",)), rows).split())
    assert text in html.unescape(explored(rows, data="scoreboard.parquet", command="again"))


def test_a_trial_is_of_today_by_the_settings_that_are_tried() -> None:
    row = {**PLACE._asdict(), "attack": "agnostic:1", "key": "old"}
    assert age([row]).startswith("0 of 1 row")


def _figures(rows: Rows) -> list[tuple[str, str, str, float, float]]:
    return sorted((r["target"], r["rows"], r["measure"], r["figure"], r["blind"]) for r in rows)


def _solves_once(row: Document) -> bool:
    kind = installed_attack(row["attack"])
    return kind is not None and not MOST_WORK.keys() & kind.model_fields.keys()


def _of_earlier_code(shuffled: list[Drawn], cells: dict[Drawn, Rows]) -> list[Drawn]:
    """Twenty of ``shuffled`` without a row under today's key; all of ``shuffled`` where fewer are left."""
    earlier = (
        of
        for of in shuffled
        if not {row["key"] for row in cells[of]} & {key for key, _ in keyed(of[0], [of[1]]).values()}
    )
    found = list(islice(earlier, 20))
    return found if len(found) == 20 else shuffled


def test_a_cell_with_todays_key_is_not_drawn() -> None:
    key = keyed(PLACE, ["half"])["half"][0]
    drawn = [(PLACE._replace(seed=seed), "half") for seed in range(21)]
    old: dict[Drawn, Rows] = {of: [{"key": "old"}] for of in drawn}
    assert _of_earlier_code(drawn, {**old, drawn[1]: [{"key": key}]}) == drawn[:1] + drawn[2:]
    assert _of_earlier_code(drawn[:5], old) == drawn[:5]


@pytest.mark.facts
@pytest.mark.timeout(900)
def test_twenty_random_cells_are_equal_to_the_bit(tmp_path: Path) -> None:
    """None of the drawn rows has the key of today's code: all are of earlier code, as long as twenty such
    cells are published. Compared are cells of models of numpy and of attacks that do not iterate: what
    iterates carries the last bit of a kernel on. The draw is seeded, and knows no result.
    """
    cells: dict[tuple[Place, str], Rows] = {}
    for row in parquet_rows(PUBLISHED):
        if row["federation"] in FEDERATIONS and row["attack"] != COST and not is_apart(row):
            place = Place(*(row[name] for name in Place._fields))
            cells.setdefault((place, row["attack"]), []).append(row)
    kept = [
        of for of, rows in cells.items() if not any(r.get("reason") for r in rows) and _solves_once(rows[0])
    ]
    drawn = _of_earlier_code(random.Random(41).sample(sorted(kept), len(kept)), cells)[:20]
    kernels = {lib.get("architecture") for lib in threadpool_info() if lib["internal_api"] == "openblas"}
    other = {
        (place, attack): (_figures(cells[place, attack]), _figures(new))
        for place, attack in drawn
        if _figures(new := measured(place, keyed(place, [attack]), scratch=str(tmp_path)))
        != _figures(cells[place, attack])
    }
    assert other == {}, f"{len(other)} of 20 differ under kernels of {kernels}"
