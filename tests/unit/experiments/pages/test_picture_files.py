"""``vflens report --pictures``: images and charts as files, and the report's first screen."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from browser import CHROMIUM, chromium, page
from commandline import Run, strict, vflens
from PIL import Image
from runfolder import write_run

from vflens.errors import StorageError
from vflens.experiments.pages.ledger import ledger
from vflens.experiments.pages.picture_files import _file_names, write_chart_files, write_image_files
from vflens.experiments.pages.report import charts, write_report
from vflens.experiments.results.record import read_runs

_FIXTURES = (chromium, page, vflens)  # used by name
NEEDS_CHROMIUM = pytest.mark.skipif(not CHROMIUM.exists(), reason="Chromium is not installed")


def test_an_image_file_shows_the_pixels_of_the_run(tmp_path: Path) -> None:
    """Of a target of 2 by 2 pixels each is 48 pixels wide; the originals stand in the first column."""
    run = write_run(tmp_path / "demo")
    (file,) = write_image_files(read_runs([run]), tmp_path / "files")
    assert file.name == "images-no-defence-passive.png"
    with np.load(run / "passive/pictures.npz") as kept:
        first = kept["original"][0]
    with Image.open(file) as picture:
        shown = np.asarray(picture.convert("L"))
    for j, (row, column) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
        assert shown[40 + 48 * row + 24, 8 + 48 * column + 24] == round(255 * float(np.clip(first[j], 0, 1)))


@NEEDS_CHROMIUM
@pytest.mark.timeout(300)
def test_the_same_run_gives_the_same_files(tmp_path: Path) -> None:
    """Bit by bit: plotly names the parts of a drawing at random."""
    runs = read_runs([write_run(tmp_path / "demo")])
    first, again = (
        [*write_image_files(runs, tmp_path / name), *write_chart_files(runs, tmp_path / name)]
        for name in ("first", "again")
    )
    assert [file.name for file in first] == [file.name for file in again]
    assert [file.read_bytes() for file in first] == [file.read_bytes() for file in again]


@NEEDS_CHROMIUM
@pytest.mark.timeout(300)
def test_every_chart_of_the_report_is_an_svg_file(tmp_path: Path, vflens: Run) -> None:
    run, out = write_run(tmp_path / "demo"), tmp_path / "files"
    told = strict(vflens("report", run, "--out", tmp_path / "r.html", "--pictures", out, "--json").out)
    assert told["pictures"] == str(out)
    charts = sorted(out.glob("*.svg"))
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert len(charts) == page.count('class="plot"') > 3
    for chart in charts:
        root = ElementTree.parse(chart).getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert len("".join(root.itertext())) > 20, "its texts"


def test_without_chromium_there_are_images_only(
    tmp_path: Path, vflens: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, out = write_run(tmp_path / "demo"), tmp_path / "files"
    monkeypatch.setenv("PATH", str(tmp_path))
    ended = vflens("report", run, "--out", tmp_path / "r.html", "--pictures", out)
    assert ended.code == 0
    assert re.search(r"\(images only: a chart as a file needs Chromium: install it", ended.out)
    assert {file.suffix for file in out.iterdir()} == {".png"}


def test_a_browser_that_draws_nothing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "chromium").write_text("#!/bin/sh\necho '<html><pre>one</pre></html>'\n")
    (tmp_path / "chromium").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(StorageError, match=r"drew 1 of \d+ charts: save them from the report"):
        write_chart_files(read_runs([write_run(tmp_path / "demo")]), tmp_path / "files")
    assert not (tmp_path / "files").exists()


def test_a_browser_that_draws_no_svg_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = read_runs([write_run(tmp_path / "demo")])
    drawn = "<pre>one</pre>" * (sum(map(len, charts(runs).values())) + len(ledger(runs[0])["flows"]))
    (tmp_path / "chromium").write_text(f"#!/bin/sh\necho '{drawn}'\n")
    (tmp_path / "chromium").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(StorageError, match=r"drew a chart that is no SVG \(.+\): save it from the report"):
        write_chart_files(runs, tmp_path / "files")
    assert not (tmp_path / "files").exists()


def test_no_title_leads_out_of_the_folder() -> None:
    titles = ["../../etc/passwd", "<script>", "a" * 500, "A B", "a-b-2", "a-b", "", "—"]
    names = _file_names(titles)
    assert names[:6] == ["etc-passwd", "script", "a" * 80, "a-b", "a-b-2", "a-b-3"]
    assert len(set(names)) == len(titles)
    assert all(re.fullmatch(r"[a-z0-9-]{1,90}", name) for name in names)


def test_the_first_screen_has_verdict_and_pictures(tmp_path: Path, page: Any) -> None:
    """The table follows them."""
    runs = [write_run(tmp_path / name) for name in ("one", "two")]
    write_report(runs, tmp_path / "r.html")
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto((tmp_path / "r.html").as_uri())
    verdict, pictures, numbers = (
        page.locator(f"#{name}").bounding_box() for name in ("verdict", "pictures", "numbers")
    )
    shown = [image.bounding_box() for image in page.locator("#pictures img").all() if image.is_visible()]
    assert len(shown) >= 4
    assert verdict["y"] < pictures["y"] < numbers["y"]
    assert max(box["y"] + box["height"] for box in shown) <= 800
    assert numbers["y"] < 1000
