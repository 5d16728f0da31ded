"""A sweep's page of 2,005 cells, 10,025 results, in Chromium: seconds until it shows, sorts and finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest

from vflens.experiments.sweeps import cap
from vflens.experiments.sweeps.sweep import render
from vflens.experiments.sweeps.sweep_page import drawing

CHROMIUM = Path("/usr/bin/chromium")
FIGURES = ("mse", "relative", "accuracy", "auc", "mean_kl", "argmax_kept")
#: Milliseconds of each task that held the page up for 50 or more.
LONG_TASKS = """window.long = [];
new PerformanceObserver((all) => window.long.push(...all.getEntries().map((one) => Math.round(one.duration))))
  .observe({type: "longtask", buffered: true});"""


@pytest.mark.skipif(not CHROMIUM.exists(), reason="Chromium is not installed")
@pytest.mark.benchmark(group="sweep page")
def test_two_thousand_cells_in_a_browser(benchmark: Any, tmp_path: Path) -> None:
    from playwright.sync_api import expect, sync_playwright

    began = perf_counter()
    (tmp_path / "sweep.html").write_text(_page(_rows()), encoding="utf-8")
    print(f"\nwritten in {perf_counter() - began:.2f} s")
    with sync_playwright() as driver:
        window = driver.chromium.launch(executable_path=CHROMIUM).new_page()
        window.add_init_script(LONG_TASKS)
        window.goto((tmp_path / "sweep.html").as_uri())
        expect(window.locator(".place")).to_contain_text("lines 1 to 100")
        paint = "performance.getEntriesByName('first-contentful-paint')[0].startTime / 1000"
        loaded = "performance.getEntriesByType('navigation')[0].loadEventEnd / 1000"
        print(f"first paint {window.evaluate(paint):.2f} s, loaded {window.evaluate(loaded):.2f} s")
        print(f"long tasks until then, ms: {window.evaluate('window.long')}")
        sort = window.locator("#explorer thead button[name=relative]")
        find = window.locator("#explorer .find")
        acts: dict[str, Callable[[], None]] = {"sort": sort.click, "find": lambda: find.fill("noise3 a1")}
        for name, act in acts.items():
            window.evaluate("window.long.length = 0")
            begun = perf_counter()
            act()
            seconds = perf_counter() - begun
            window.wait_for_timeout(2_000)
            print(f"{name}: {seconds:.2f} s, long tasks, ms: {window.evaluate('window.long')}")
        benchmark.pedantic(sort.click, rounds=5)


def _rows() -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    places = [("undefended", 0.0), *((f"noise{d}", s / 2) for d in range(20) for s in range(1, 21))]
    where = {"target": "passive", "scored_set": "predict", "rows": 100, "blind": 0.08}
    return [
        {"defense": d, "strength": s, "seed": seed, "attack": f"a{a}", **where}
        | dict(zip(FIGURES, rng.random(len(FIGURES)).tolist(), strict=True))
        for d, s in places
        for seed in range(5)
        for a in range(5)
    ]


def _page(rows: list[dict[str, Any]]) -> str:
    varied = {f"noise{d}": "sigma" for d in range(20)}
    drawn = replace(drawing(rows, []), tables=cap.tables(rows, varied))
    return render("sweep", drawn, [], data="sweep.parquet", command="vflens sweep")
