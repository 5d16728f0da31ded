"""An index of many runs: a line for each, a box that chooses lines, and the page behind a line."""

from __future__ import annotations

import json
import shutil
import signal
from errno import EACCES
from pathlib import Path

import httpx
import pytest
from axe import serious
from browser import chromium, page
from livepage import Browser, watching
from playwright.sync_api import Page, expect
from runfolder import write_party, write_run

from vflens.cli.watch import _page
from vflens.errors import DataError
from vflens.experiments.results.folders import runs_under
from vflens.experiments.results.record import read_runs
from vflens.experiments.watch.index import IndexPage, holds_many
from vflens.experiments.watch.page import RunsPage

_FIXTURES = (chromium, page)  # used by name


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two experiments with a scenario of one name, and a run that lies higher."""
    write_run(tmp_path / "runs/digits/undefended")
    write_run(tmp_path / "runs/wine/undefended", {"ls": 0.2})
    write_party(tmp_path / "runs/hospitals/passive", "passive", status={"state": "failed", "reason": "disk"})
    return tmp_path / "runs"


def _lines(index: IndexPage) -> dict[str, str]:
    """Run → its line, as HTML."""
    lines = index.panels({})["index"].split("<tr><th")[2:]
    return {line.split("</a>")[0].rpartition(">")[2]: line for line in lines}


def test_an_index_has_a_line_for_each_run(runs: Path) -> None:
    index = IndexPage(runs).panels({})["index"]
    assert index.count("<tr><th") == 4  # of the head, and of three runs
    for at in ("digits/undefended", "wine/undefended", "hospitals"):
        assert f">{at}</a>" in index
    assert "reconstructs" in index
    assert "failed" in index


def test_a_line_leads_to_the_page_of_its_run(runs: Path) -> None:
    index = IndexPage(runs)
    found = index.panels({"at": "digits/undefended"})
    assert 'href="?"' in found["way"]
    alone = RunsPage([runs / "digits/undefended"]).panels({})
    assert {name: html for name, html in found.items() if name != "way"} == alone
    assert "index" in index.panels({"at": "../runs"})
    assert "<title>VFLens · undefended" in index.report({"at": "digits/undefended"})
    with pytest.raises(DataError, match="choose a run"):
        index.report({})


def test_the_report_of_a_page_is_that_of_the_chosen_run(runs: Path) -> None:
    browser = Browser(IndexPage(runs)).enter()
    html = browser.get("/?at=wine%2Fundefended").text
    assert 'href="report.html?at=wine%2Fundefended"' in html
    assert "<title>VFLens · undefended" in browser.get("/report.html?at=wine%2Fundefended").text
    assert browser.get("/report.html").status_code == 503


def test_a_damaged_run_is_a_line(runs: Path) -> None:
    (runs / "wine/undefended/passive/metrics.parquet").write_bytes(b"no table")
    for party in ("active", "coordinator"):
        shutil.rmtree(runs / "wine/undefended" / party)
    index = IndexPage(runs)
    line = _lines(index)["wine/undefended"]
    assert ">damaged<" in line
    assert "copy it anew" in line
    behind = index.panels({"at": "wine/undefended"})
    assert 'href="?"' in behind["way"]
    assert "copy it anew" in behind["summary"]


@pytest.mark.parametrize("opened_before", [False, True])
def test_one_damaged_party_is_seen_in_the_line_of_its_run(runs: Path, opened_before: bool) -> None:
    """Figures of its other parties stand for the whole no longer."""
    index = IndexPage(runs)
    if opened_before:
        assert "reconstructs" in _lines(index)["wine/undefended"]
    (runs / "wine/undefended/coordinator/status.json").write_text("{")
    line = _lines(index)["wine/undefended"]
    assert ">damaged<" in line
    assert "coordinator/status.json cannot be read as JSON" in line
    assert "reconstructs" not in line
    assert ">damaged<" not in _lines(index)["digits/undefended"]


def test_an_index_sees_runs_come_and_go(runs: Path) -> None:
    index = IndexPage(runs)
    shutil.rmtree(runs / "wine")
    write_run(runs / "iris/undefended")
    html = index.panels({})["index"]
    assert "iris/undefended" in html
    assert "wine" not in html


def test_only_a_folder_of_experiments_has_an_index(runs: Path) -> None:
    assert isinstance(_page([runs]), IndexPage)
    for folder in (runs / "digits", runs / "digits/undefended", runs / "digits/undefended/passive"):
        assert not holds_many(folder)
        assert isinstance(_page([folder]), RunsPage)
    assert isinstance(_page([runs / "digits", runs / "hospitals"]), RunsPage)


def test_a_folder_inside_a_partys_is_none_of_a_run(runs: Path) -> None:
    write_party(runs / "hospitals/passive/earlier", "passive")
    assert list(runs_under(runs)) == [
        (runs / home).resolve() for home in ("digits/undefended", "hospitals", "wine/undefended")
    ]
    assert runs_under(runs / "hospitals/passive/earlier") == {}


def test_words_choose_lines(page: Page, runs: Path) -> None:
    with watching(runs) as (_, address):
        page.goto(address)
        expect(page.get_by_text("3 of 3 runs")).to_be_visible()
        assert serious(page) == []
        page.get_by_role("searchbox", name="find").fill("UNDEF digits")
        expect(page.get_by_text("1 of 3 runs")).to_be_visible()
        write_party(runs / "iris/undefended/passive", "passive")  # a new line keeps what was typed
        expect(page.get_by_text("1 of 4 runs")).to_be_visible()
        expect(page.get_by_role("link", name="report as a file")).to_be_hidden()
        page.get_by_role("link", name="digits/undefended").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("reconstructs")
        with page.expect_download() as downloaded:
            page.get_by_role("link", name="report as a file").click()
        assert "<title>VFLens · undefended" in Path(downloaded.value.path()).read_text()
        page.get_by_role("link", name="all runs").click()
        expect(page.get_by_text("4 of 4 runs")).to_be_visible()


def test_the_last_state_is_sent_before_a_page_ends(tmp_path: Path) -> None:
    """What a run writes right before its end, when the page would have paused."""
    run = write_run(tmp_path / "demo")
    with watching(run) as (process, address), httpx.Client(timeout=60) as client:
        opened = client.get(address, follow_redirects=True)
        with client.stream("GET", f"{opened.url}live") as stream:
            lines = stream.iter_lines()
            assert next(lines).startswith("data: ")
            write_party(
                run / "coordinator", "coordinator", status={"state": "failed", "reason": "the last word"}
            )
            process.send_signal(signal.SIGTERM)
            facts = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    assert any("the last word" in panel["html"] for panel in facts)


def test_a_folder_that_may_not_be_opened_is_a_line(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may open any, so the system's refusal is put there."""
    closed = runs / "secret"
    closed.mkdir()
    listed, there = Path.iterdir, Path.exists

    def refuse(path: Path) -> bool:
        if closed in (path, path.parent):
            raise PermissionError(EACCES, "Permission denied", str(path))
        return False

    monkeypatch.setattr(Path, "iterdir", lambda path: refuse(path) or listed(path))
    monkeypatch.setattr(Path, "exists", lambda path: refuse(path) or there(path))
    lines = _lines(IndexPage(runs))
    assert len(lines) == 4
    assert "Permission denied" in lines["secret"]
    assert "reconstructs" in lines["digits/undefended"]


def test_no_link_leads_out_of_the_folder(runs: Path, tmp_path: Path) -> None:
    mine = write_run(tmp_path / "mine/own")
    (runs / "more").symlink_to(mine)
    (runs / "digits" / "more").symlink_to(mine)
    assert [home.name for home in runs_under(runs)] == ["undefended", "hospitals", "undefended"]
    assert {run.name for run in read_runs([runs / "digits"])} == {"undefended"}
