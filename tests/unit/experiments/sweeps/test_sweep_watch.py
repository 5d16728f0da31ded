"""The live page of a sweep: cells as they come, what failed in words, and the whole sweep at its end."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from browser import chromium, page
from commandline import Refused, refused, vflens
from livepage import Browser, watching
from runfolder import write_run
from test_sweep_parts import SETTINGS

from vflens.errors import DataError
from vflens.experiments.sweeps.pool import Pool, Share, write_rows
from vflens.experiments.sweeps.sweep import run_part, run_sweep
from vflens.experiments.sweeps.sweep_file import SweepFile, cells
from vflens.experiments.watch.sweep import SweepPage, sweeps_in

_FIXTURES = (chromium, page, refused, vflens)  # used by name
HOSTILE = "</script><b>"


def shown(page: str) -> list[list[Any]]:
    """The rows on a page."""
    found = re.findall(r'class="rows">(.*?)</script>', page, re.DOTALL)
    return [row for text in found for row in json.loads(text)["rows"]]


def test_cells_are_shown_as_they_come_and_the_whole_sweep_at_the_end(tmp_path: Path) -> None:
    what, pool = SweepFile.model_validate(SETTINGS), Pool(tmp_path / ".tiny")
    assert sweeps_in(tmp_path) == []
    run_part(what, pool, Share(1, 4))
    assert sweeps_in(tmp_path) == sweeps_in(pool.folder) == [pool.folder]
    browser = Browser(SweepPage(tmp_path)).enter()
    first = browser.get("/").text
    assert "1 of 4 federations" in first
    assert "undefended: black_box was skipped" in first
    assert len(shown(first)) == 2
    write_rows(pool.folder / "other.parquet", [{"attack": "of an earlier file"}])
    lost, half = (cell.file() for cell in cells(what)[1:3])
    (pool.folder / half).write_bytes(b"PAR1")
    write_rows(pool.folder / lost, [{"defense": HOSTILE, "strength": 1.0, "refused": f"was {HOSTILE}"}])
    second = browser.get("/").text
    assert "2 of 4 federations" in second
    assert "&lt;/script&gt;&lt;b&gt; at 1 was &lt;/script&gt;&lt;b&gt;" in second
    assert "1 of 4" not in browser.get("/report.html").text
    (pool.folder / lost).unlink()
    run_sweep(what, pool, tmp_path, "again")
    last = browser.get("/").text
    assert "complete: 4 of 4 federations" in last
    assert len(shown(last)) == 8
    assert browser.get("/report.html").text == (tmp_path / "sweep.html").read_text(encoding="utf-8")
    assert sweeps_in(tmp_path) == []


def test_a_damaged_description_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / ".tiny").mkdir()
    (tmp_path / ".tiny" / "sweep.json").write_text('{"sweep": "tiny"}')
    with pytest.raises(DataError, match=r"sweep\.json: it describes no sweep .*: start the sweep again$"):
        SweepPage(tmp_path)


def test_a_cell_that_is_none_is_named_and_its_neighbour_shown(tmp_path: Path) -> None:
    what, pool = SweepFile.model_validate(SETTINGS), Pool(tmp_path / ".tiny")
    run_part(what, pool, Share(1, 4))
    bad = [cell.file() for cell in cells(what)[1:4]]
    whole = {"defense": "d", "seed": 1, "attack": "a", "target": "t", "scored_set": "predict"}
    hostile = "\x1b[31m\u202e" + 10_000 * "A"
    write_rows(pool.folder / bad[0], [{**whole, "strength": "much", "refused": "no"}])
    write_rows(pool.folder / bad[1], [{**whole, "strength": 1.0, "attack": 3.5, "mse": 1.0, "blind": 1.0}])
    write_rows(pool.folder / bad[2], [{"defense": hostile, "strength": 1.0, "refused": "so"}])
    browser = Browser(SweepPage(tmp_path)).enter()
    first = browser.get("/").text
    for html in (first, browser.get("/report.html").text):
        assert "\x1b" not in html
        assert "\u202e" not in html
        assert 2_000 * "A" not in html
    assert "2 of 4 federations" in first
    assert first.count("holds no results of a sweep: remove it") == 2
    assert browser.get("/report.html").text.count("holds no results of a sweep: remove it") == 2
    assert len(shown(first)) == 2
    write_rows(pool.folder / bad[0], [{**whole, "strength": 1.0, "refused": "no"}])
    assert browser.get("/").text.count("holds no results of a sweep: remove it") == 1


def test_a_sweep_that_has_ended_names_its_page(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "sweep.html").write_text("<p>")
    assert refused(2, "watch", tmp_path) == f"the sweep in {tmp_path} has ended: open {tmp_path}/sweep.html"


def test_of_two_sweeps_in_a_folder_one_is_to_be_named(tmp_path: Path, refused: Refused) -> None:
    what = SweepFile.model_validate(SETTINGS)
    one, other = tmp_path / ".one", tmp_path / ".other"
    for folder in (one, other):
        run_part(what, Pool(folder), Share(1, 4))
    assert refused(2, "watch", tmp_path) == f"{tmp_path} holds 2 sweeps: give one, {one} or {other}"
    for cell in other.glob("*.parquet"):
        cell.unlink()
    progress = [SweepPage(folder).panels({})["progress"] for folder in (one, other)]
    assert "1 of 4 federations" in progress[0]
    assert "0 of 4 federations" in progress[1]


def test_a_run_beside_the_page_of_a_sweep_is_shown(tmp_path: Path) -> None:
    run, ended = write_run(tmp_path / "runs" / "demo"), tmp_path / "sweep"
    ended.mkdir()
    for folder in (run.parent, ended):
        (folder / "sweep.html").write_text("<p>")
    for folders in ([run.parent], [ended, run.parent], [run.parent, ended]):
        with watching(*folders) as (_, address):
            assert address.startswith("http://127.0.0.1:")


@pytest.mark.timeout(300)
@pytest.mark.facts
def test_a_browser_sorts_cells_that_come_later(page: Any, tmp_path: Path) -> None:
    from playwright.sync_api import expect

    what, pool = SweepFile.model_validate(SETTINGS), Pool(tmp_path / ".tiny")
    run_part(what, pool, Share(1, 4))
    with watching(tmp_path) as (_, address):
        page.goto(address)
        expect(page.locator(".count")).to_have_text("2 of 2 results, 2 lines", timeout=60_000)
        page.get_by_label("each seed by itself").check()
        run_part(what, pool, Share(2, 4))
        expect(page.locator(".count")).to_have_text("4 of 4 results, 4 lines", timeout=60_000)
        expect(page.get_by_label("each seed by itself")).to_be_checked()  # the controls stay
        expect(page.locator(".curve svg").first).to_be_visible(timeout=60_000)
