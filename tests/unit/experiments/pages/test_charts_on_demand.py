"""Pages stay small, and run plotly only when a chart is seen or printed."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from browser import chromium, page
from playwright.sync_api import Page, expect
from reportpage import report
from runfolder import write_run

from vflens.experiments.pages import plots
from vflens.experiments.pages.page import plotly

_FIXTURES = (chromium, page)  # used by name
ROOT = Path(__file__).parents[4]
MOST_BYTES = 1_500_000


def test_the_script_is_the_one_that_the_decision_names() -> None:
    folder = ROOT / "vflens/experiments/pages/plotly"
    named = (ROOT / "docs/adr/0049-charts-on-demand.md").read_text(encoding="utf-8")
    script = (folder / "plotly-basic.min.js").read_bytes()
    assert hashlib.sha256(script).hexdigest() in named
    version = re.search(rb"v(\d+\.\d+\.\d+)", script[:200])
    assert version is not None
    assert f"plotly.js-basic-dist-min` {version[1].decode()} " in named
    assert "MIT" in (folder / "LICENSE").read_text(encoding="utf-8")
    assert '"plotly/*"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert "</script" not in plotly()


def test_a_report_is_small_and_has_only_what_the_script_draws(tmp_path: Path) -> None:
    found = report(write_run(tmp_path / "demo"))
    assert len(found.html.encode()) < MOST_BYTES
    assert len(found.figures) > 3
    assert {trace["type"] for figure in found.figures for trace in figure["data"]} == {"scatter", "bar"}


def test_a_chart_is_drawn_when_it_unfolds(page: Page, tmp_path: Path) -> None:
    report(write_run(tmp_path / "demo"))
    page.goto((tmp_path / "report.html").as_uri())
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert page.evaluate("typeof Plotly") == "undefined"
    page.locator("#heat summary").click()
    expect(page.locator("#heat .plot .main-svg").first).to_be_attached()
    expect(page.locator("#heat .plot").first).to_contain_text("%")
    assert page.locator("#convergence .plot[data-drawn]").count() == 0


def test_a_chart_saves_itself_as_svg(page: Page, tmp_path: Path) -> None:
    report(write_run(tmp_path / "demo"))
    page.goto((tmp_path / "report.html").as_uri())
    page.locator("#heat summary").click()
    chart = page.locator("#heat .plot").first
    chart.hover()
    with page.expect_download() as saved:
        chart.locator(".modebar-btn").click()
    assert saved.value.suggested_filename.endswith(".svg")
    root = ElementTree.parse(saved.value.path()).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert len("".join(root.itertext())) > 20, "its texts"


@pytest.mark.facts
def test_paper_has_every_chart(page: Page, tmp_path: Path) -> None:
    report(write_run(tmp_path / "demo"))
    page.goto((tmp_path / "report.html").as_uri())
    page.pdf()
    assert page.locator(".plot:not([data-drawn])").count() == 0
    assert page.locator(".plot .main-svg").count() > 3


@pytest.mark.parametrize(
    ("symmetric", "values", "colours"),
    [
        (False, [0.0, 2.0, 4.0], ["#eef2f6", "#fd8d3c", "#7f2704"]),
        (False, [0.0, 0.5, 4.0], ["#eef2f6", "#f6e1cc", "#7f2704"]),
        (True, [-1.0, 0.0, 0.5], ["#053061", "#f7f7f7", "#d6604d"]),
        (False, [3.0, 3.0], ["#eef2f6", "#eef2f6"]),
    ],
)
def test_a_tile_has_the_colour_of_its_value(symmetric: bool, values: list[float], colours: list[str]) -> None:
    """The scale's stops are hit exactly; half way between two of them each part is their mean."""
    names = [f"<b>{i}" for i in range(len(values))]
    drawn = plots.heat_map("heat", names, ["row"], [values], symmetric=symmetric)["spec"]
    assert drawn["data"][0]["marker"]["color"] == colours
    assert drawn["layout"]["xaxis"]["ticktext"][0] == "&lt;b&gt;0"


def test_of_many_names_some_are_left_out() -> None:
    names = [str(i) for i in range(100)]
    axis = plots.heat_map("heat", names, ["row"], [[0.0] * 100])["spec"]["layout"]["xaxis"]
    assert axis["ticktext"] == [str(i) for i in axis["tickvals"]]
    assert len(axis["ticktext"]) == 34
