"""``vflens report --pictures``: images as files, and the report's first screen."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from browser import chromium, page
from commandline import Run, strict, vflens
from PIL import Image
from runfolder import write_run

from vflens.experiments.pages.picture_files import _file_names, write_image_files
from vflens.experiments.pages.report import write_report
from vflens.experiments.results.record import read_runs

_FIXTURES = (chromium, page, vflens)  # used by name


def test_an_image_file_shows_the_pixels_of_the_run(tmp_path: Path) -> None:
    """Each pixel of a target of 2 by 2 is 48 pixels wide; the originals stand in the first column."""
    run = write_run(tmp_path / "demo")
    (file,) = write_image_files(read_runs([run]), tmp_path / "files")
    assert file.name == "images-no-defence-passive.png"
    with np.load(run / "passive/pictures.npz") as kept:
        first = kept["original"][0]
    with Image.open(file) as picture:
        shown = np.asarray(picture.convert("L"))
    for j, (row, column) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
        assert shown[40 + 48 * row + 24, 8 + 48 * column + 24] == round(255 * float(np.clip(first[j], 0, 1)))


def test_the_same_run_gives_the_same_files(tmp_path: Path, vflens: Run) -> None:
    run, out = write_run(tmp_path / "demo"), tmp_path / "files"
    found = strict(vflens("report", run, "--out", tmp_path / "r.html", "--pictures", out, "--json").out)
    assert found["pictures"] == str(out)
    written = write_image_files(read_runs([run]), tmp_path / "again")
    assert sorted(file.name for file in out.iterdir()) == [file.name for file in written]
    assert [(out / file.name).read_bytes() for file in written] == [file.read_bytes() for file in written]


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
