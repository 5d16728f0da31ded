"""The published rows are ranked, shown and compared where the extras of their attacks are not installed."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from browser import chromium, page
from scoreboard_rows import described

from vflens.experiments.scoreboard.entry import earlier
from vflens.experiments.scoreboard.explorer import explored
from vflens.experiments.scoreboard.keys import COST
from vflens.experiments.scoreboard.kinds import PUBLISHED
from vflens.experiments.sweeps.pool import write_rows
from vflens.storage.arrow import parquet_rows

_FIXTURES = (chromium, page)  # used by name
WITHOUT_TORCH = """
import sys
from importlib.abc import MetaPathFinder

class Absent(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
from vflens.experiments.scoreboard.entry import standings
from vflens.experiments.scoreboard.explorer import explored
from vflens.experiments.scoreboard.grid import ScoreboardGrid
from vflens.experiments.scoreboard.kinds import PUBLISHED, kind_of
from vflens.plugins.attack import installed_attack
from vflens.registry import ATTACKS
from vflens.storage.arrow import parquet_rows
rows = parquet_rows(PUBLISHED)
assert installed_attack("wmi") is None and kind_of("wmi") is not None
grid = ScoreboardGrid(("digits",), ("vertical-split",))
own = [r for r in rows if r["attack"] == "inverse_network" and r["data"] == "digits"]
own = [r for r in own if (r["federation"], r["defense"]) == ("vertical-split", "no defence")]
own = [{**r, "attack": "zero_of_test"} for r in own]
ATTACKS._given["zero_of_test"] = installed_attack("half_star")
(found,) = standings("zero_of_test", own, rows, grid)
print(*(line.attack for line in found.lines))
some = [r for r in rows if r["attack"] in ("wmi", "zero") and r["seed"] == 1]
print("wmi" in explored(some, data="scoreboard.parquet", command="again"))
"""


@pytest.mark.facts
def test_without_torch_an_attack_is_ranked_among_those_that_need_it() -> None:
    run = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    rivals, shown = run.stdout.splitlines()
    assert {"zero_of_test", "wmi"} <= {*rivals.split()}
    assert shown == "True"


def test_published_rows_say_what_their_attacks_estimate_and_need() -> None:
    rows = parquet_rows(PUBLISHED)
    assert described(rows) == rows, "docs/scoreboard.py --as-is writes them anew"
    assert all(row["estimates"] and row["needs"] is not None for row in rows if row["attack"] != COST)


def test_an_attack_that_is_gone_is_left_out_of_the_comparison(tmp_path: Any) -> None:
    rows = [row for row in parquet_rows(PUBLISHED) if row["attack"] in ("zero", COST)][:40]
    write_rows(tmp_path / "old.parquet", [*rows, {**rows[0], "attack": "gone"}])
    assert {row["attack"] for row in earlier(tmp_path / "old.parquet")} == {row["attack"] for row in rows}


@pytest.mark.timeout(300)
@pytest.mark.facts
def test_the_page_opens_with_ranks(page: Any, tmp_path: Any) -> None:
    """The first chart has a named mark for each defence; that of the ranks one for each attack, by error."""
    from playwright.sync_api import expect

    rows = [r for r in parquet_rows(PUBLISHED) if (r["data"], r["federation"]) == ("bank", "vertical-lr")]
    text = explored(rows, data="scoreboard.parquet", command="again")
    (tmp_path / "board.html").write_text(text, encoding="utf-8")
    page.goto((tmp_path / "board.html").as_uri())
    chart = page.locator("#first .plot").first
    expect(chart.locator(".point").first).to_be_visible(timeout=60_000)
    assert chart.locator(".textpoint").count() >= 20
    plot = page.locator("#explorer .curve").first
    plot.scroll_into_view_if_needed()
    label = "estimates: columns: error / blind error over attack"
    expect(plot).to_have_attribute("aria-label", label, timeout=60_000)
    expect(plot.locator(".point").first).to_be_visible(timeout=60_000)
    shown, order = plot.evaluate("box => [box.data.map(c => [c.x, c.y]), box.layout.xaxis.categoryarray]")
    assert sum(len(names) for names, _ in shown) >= 20
    errors = {name: y for names, ys in shown for name, y in zip(names, ys, strict=True)}
    best = min(errors, key=lambda name: errors[name])
    assert next(name for name in order if name in errors) == best
    assert page.locator("select[name=x]").input_value() == "attack"
