"""The page of a sweep, in a browser: every result is found, sorted and drawn at 2,000 cells, and names end as
text.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import chromium, page
from scipy import stats
from thinned import first

from vflens.experiments.sweeps.explorer import packed
from vflens.experiments.sweeps.sweep import render
from vflens.experiments.sweeps.sweep_page import drawing
from vflens.numerics.measures.intervals import over_blind, pooled

_FIXTURES = (chromium, page)  # used by name
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
SECONDS = 60_000  # for what should take one, on a loaded machine


def row(defense: str, strength: float, seed: int, attack: str, relative: float) -> dict[str, Any]:
    place = {"defense": defense, "strength": strength, "seed": seed, "attack": attack, "target": "passive"}
    figures = {"mse": 0.08 * relative, "blind": 0.08, "relative": relative, "accuracy": 1 - 0.01 * strength}
    return {**place, "scored_set": "predict", "rows": 36, **figures}


def sweep(defenses: int, strengths: int, seeds: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(3)
    places = [("undefended", 0.0)]
    places += [(f"noise{d}", float(s)) for d in range(defenses) for s in range(1, strengths + 1)]
    return [row(d, s, seed, "rcc2", rng.random()) for d, s in places for seed in range(seeds)]


def opened(window: Any, folder: Path, rows: list[dict[str, Any]]) -> Any:
    """The section with every result, of the page of ``rows``."""
    text = render("sweep", drawing(rows, []), [HOSTILE], data="sweep.parquet", command="again")
    (folder / "sweep.html").write_text(text, encoding="utf-8")
    window.goto((folder / "sweep.html").as_uri())
    return window.locator("#explorer")


def column(explorer: Any, name: str) -> list[str]:
    """What a column of the table shows."""
    heads = explorer.locator("thead button").evaluate_all("all => all.map(one => one.name)")
    path = f"tbody td:nth-child({heads.index(name) + 1})"
    return list(explorer.locator(path).all_text_contents())


@pytest.mark.timeout(300)
@pytest.mark.facts
def test_two_thousand_cells_are_sorted_and_found(page: Any, tmp_path: Path) -> None:
    from playwright.sync_api import expect

    rows = sweep(20, 20, 5)
    explorer = opened(page, tmp_path, rows)
    count, place = explorer.locator(".count"), explorer.locator(".place")
    expect(count).to_have_text("2005 of 2005 results, 401 lines", timeout=SECONDS)
    expect(place).to_have_text("lines 1 to 100 of 401")
    means = sorted(np.mean([r["relative"] for r in rows[i : i + 5]]) for i in range(0, 2005, 5))
    explorer.locator("thead button[name=relative]").focus()
    for direction, expected in (("ascending", means), ("descending", means[::-1])):
        page.keyboard.press("Enter")  # the head keeps the focus
        head = explorer.locator(f"th[aria-sort={direction}]")
        expect(head).to_contain_text("error / blind error")
        shown = [float(text.split(" ± ")[0]) for text in column(explorer, "relative")]
        assert shown == pytest.approx(expected[:100], rel=1e-3)
    explorer.get_by_role("button", name="later lines").click()
    expect(place).to_have_text("lines 101 to 200 of 401")
    explorer.get_by_label("find").fill("NOISE7 rcc2")
    expect(count).to_have_text("100 of 2005 results, 20 lines")
    assert set(column(explorer, "defense")) == {"noise7"}
    explorer.get_by_label("each seed by itself").check()
    expect(place).to_have_text("lines 1 to 100 of 100")
    explorer.get_by_label("find").fill("")
    explorer.get_by_label("defence", exact=True).first.select_option("noise3")
    expect(count).to_have_text("100 of 2005 results, 100 lines")


@pytest.mark.timeout(300)
def test_one_figure_is_drawn_over_another_with_intervals_and_the_blind_level(
    page: Any, tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    rows = sweep(2, 3, 4)
    explorer = opened(page, tmp_path, rows)
    plot = explorer.locator(".curve").first
    expect(plot).to_have_attribute("aria-label", "attack: rcc2: error / blind error over accuracy")
    expect(plot.locator("svg").first).to_be_visible(timeout=SECONDS)
    found = plot.evaluate("box => [box.data, box.layout.shapes.map(line => line.y0)]")
    curves, levels = found
    assert levels == [1]
    assert [c["name"] for c in curves] == ["noise0", "noise1"]
    groups = np.array([r["relative"] for r in rows]).reshape(7, 4)
    for curve, places in zip(curves, ([0, 1, 2, 3], [0, 4, 5, 6]), strict=True):
        of = groups[places]
        assert curve["x"] == pytest.approx([1.0, 0.99, 0.98, 0.97])
        assert curve["y"] == pytest.approx(of.mean(axis=1), rel=1e-5)
        low, high = stats.t.interval(0.95, 3, loc=of.mean(axis=1), scale=stats.sem(of, axis=1))
        assert curve["error_y"]["array"] == pytest.approx((high - low) / 2, rel=1e-4)
    for axis, name in (("x", "strength"), ("y", "mse"), ("facet", "defense"), ("colour", "attack")):
        explorer.locator(f"select[name={axis}]").select_option(name)
    expect(explorer.locator("figcaption")).to_have_text(
        [f"defence: {d}" for d in ("undefended", "noise0", "noise1")]
    )
    second = explorer.locator(".curve").nth(1)
    second.scroll_into_view_if_needed()
    expect(second).to_have_attribute("aria-label", "defence: noise0: MSE per column over strength")
    drawn = second.evaluate("box => [box.data.map(c => [c.name, c.x]), box.layout.shapes.map(s => s.y0)]")
    assert drawn == [[["rcc2", [1, 2, 3]]], [pytest.approx(0.08)]]


@pytest.mark.timeout(300)
def test_errors_are_added_over_seeds_before_they_are_divided(page: Any, tmp_path: Path) -> None:
    """One seed's labels are of one class: 0/0, and an infinite quotient of an attack that errs there."""
    from playwright.sync_api import expect

    def named(seed: int, attack: str, right: float, blind: float) -> dict[str, Any]:
        relative = over_blind(1 - right, 1 - blind)
        facts = {"label_accuracy": right, "blind": blind, "relative": relative, "rows": 8}
        place = {"defense": "none", "strength": 0.0, "scored_set": "round-0", "target": "client-1"}
        return {**place, "seed": seed, "attack": attack, **facts}

    blind = (1.0, 0.5, 0.75)
    rows = [named(s, "exact", 1.0, b) for s, b in enumerate(blind)]
    rows += [named(s, "errs", r, b) for s, (r, b) in enumerate(zip((0.75, 0.5, 0.75), blind, strict=True))]
    explorer = opened(page, tmp_path, rows)
    expect(explorer.locator(".count")).to_have_text("6 of 6 results, 2 lines", timeout=SECONDS)
    shown = dict(zip(column(explorer, "attack"), column(explorer, "relative"), strict=True))
    half = pooled([(0.25, 0.0), (0.5, 0.5), (0.25, 0.25)]).half
    assert shown["exact"] == "0"
    assert shown["errs"] == f"1.333 ± {half:.4g}"


@pytest.mark.timeout(300)
def test_hostile_names_end_as_text(page: Any, tmp_path: Path) -> None:
    from playwright.sync_api import expect

    rows = [row(d, s, 0, HOSTILE, 0.5) for d, s in (("undefended", 0.0), (HOSTILE, 1.0))]
    rows[0]["horizontal.<b>"], rows[1]["horizontal.<b>"] = "fedavg", "</script>"
    explorer = opened(page, tmp_path, rows)
    expect(explorer.locator(".count")).to_have_text("2 of 2 results, 2 lines", timeout=SECONDS)
    assert column(explorer, "attack") == [HOSTILE] * 2
    assert column(explorer, "horizontal.<b>") == ["fedavg", "</script>"]
    expect(explorer.locator(".curve .legendtext").first).to_have_text(re.compile("onerror"), timeout=SECONDS)
    assert page.locator("img, b:not(header b)").count() == 0
    expect(page.locator("#verdict li")).to_have_text(HOSTILE)


def test_rows_are_packed_without_what_json_lacks() -> None:
    rows = [
        {"seed": 0, "attack": "ls", "mse": 0.123456789, "mean_kl": math.inf, "alarm": "a sentence"},
        {"seed": 1, "attack": "ls", "mse": math.nan, "mean_kl": None, "horizontal.method": "fedavg"},
    ]
    assert packed(rows) == {
        "heads": ["seed", "attack", "mse", "mean_kl", "horizontal.method"],
        "rows": [[0, "ls", 0.123457, "∞", None], [1, "ls", None, None, "fedavg"]],
    }


@pytest.mark.parametrize("scheme", first(["light", "dark"]))
def test_a_phone_scrolls_no_page_sideways(page: Any, tmp_path: Path, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 390, "height": 844})
    rows = [{**r, "defense": f"{r['defense']}_{80 * 'w'}"} for r in sweep(2, 2, 2)]
    text = render("w" * 90, drawing(rows, ["n" * 90]), ["r" * 90], data="d" * 90, command="c" * 90)
    (tmp_path / "sweep.html").write_text(text, encoding="utf-8")
    page.goto((tmp_path / "sweep.html").as_uri())
    page.locator("#explorer tbody tr").first.wait_for(timeout=SECONDS)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
