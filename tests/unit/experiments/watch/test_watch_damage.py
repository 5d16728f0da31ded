"""The live page of damaged folders: words instead of an end, and figures again once they are mended."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from livepage import Browser
from runfolder import metric, write_party, write_run

from vflens.experiments.watch.page import RunsPage


def _vanish(folder: Path) -> None:
    shutil.rmtree(folder)


def _no_json(folder: Path) -> None:
    (folder / "status.json").write_text("{")


def _no_parquet(folder: Path) -> None:
    (folder / "metrics.parquet").write_bytes(b"PAR1")


def _no_toml(folder: Path) -> None:
    (folder / "config.toml").write_bytes(b"\xff=")


def _foreign_limits(folder: Path) -> None:
    (folder / "config.toml").write_text("limits = 3\n")


def _no_index(folder: Path) -> None:
    (folder / "transcript" / "index.jsonl").write_text("{}\n")


def _no_pictures(folder: Path) -> None:
    np.savez(folder / "pictures.npz", original=np.zeros(3))


DAMAGES = [_vanish, _no_json, _no_parquet, _no_toml, _foreign_limits, _no_index, _no_pictures]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_folder_ends_in_words(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    run = write_run(tmp_path / "demo")
    write_party(run / "passive", "passive", metrics=[metric("training_epsilon", 1.0, target="passive")])
    page = RunsPage([run / "passive", run / "active"])
    before = page.panels({})
    damage(run / "passive")
    after = page.panels({})
    assert "alarm" in "".join(html for name, html in after.items() if html != before[name])
    assert "<td>active</td>" in after["parties"]


def test_a_report_of_a_damaged_folder_is_refused_in_words(tmp_path: Path) -> None:
    folder = write_party(tmp_path / "demo" / "passive", "passive")
    browser = Browser(RunsPage([folder])).enter()
    _no_json(folder)
    answer = browser.get("/report.html")
    assert answer.status_code == 503
    assert "cannot be read as JSON" in answer.text


def test_a_mended_folder_is_read_again(tmp_path: Path) -> None:
    folder = write_party(tmp_path / "demo" / "passive", "passive")
    page, good = RunsPage([folder]), (folder / "status.json").read_text()
    _no_json(folder)
    assert "hold no run now" in page.panels({})["parties"]
    (folder / "status.json").write_text(good)
    assert page.panels({})["parties"].count("alarm") == 0
