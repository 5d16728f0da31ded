"""``vflens report --pdf``: whole or refused in words, and no browser is left."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from browser import CHROMIUM
from commandline import Refused, Run, finished_run, refused, strict, vflens

from vflens.errors import StorageError
from vflens.experiments.pages.pdf import write_pdf

_FIXTURES = (finished_run, refused, vflens)  # used by name


@pytest.mark.timeout(300)
@pytest.mark.skipif(not CHROMIUM.exists(), reason="Chromium is not installed")
def test_a_report_is_printed_beside_its_page(finished_run: Path, tmp_path: Path, vflens: Run) -> None:
    told = strict(vflens("report", finished_run, "--out", tmp_path / "r.html", "--pdf", "--json").out)
    assert told["pdf"] == str(tmp_path / "r.pdf")
    printed = (tmp_path / "r.pdf").read_bytes()
    assert printed.startswith(b"%PDF-")
    assert printed.count(b"/Type /Page\n") + printed.count(b"/Type /Page/") >= 2


def test_without_chromium_it_is_refused_before_the_work(
    finished_run: Path, tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    sentence = refused(2, "report", finished_run, "--out", tmp_path / "r.html", "--pdf")
    assert sentence.startswith("--pdf needs Chromium: install it")
    assert not (tmp_path / "r.html").exists()


def _stand_in(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = folder / "chromium"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_a_browser_that_hangs_is_ended_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _stand_in(tmp_path, f"sleep 300 & echo $! > {tmp_path}/child; wait", monkeypatch)
    with pytest.raises(StorageError, match=r"did not print the page within 1 s: print it from your browser$"):
        write_pdf(tmp_path / "r.html", tmp_path / "r.pdf", seconds=1)
    child = int((tmp_path / "child").read_text())
    until = time.monotonic() + 30
    while _lives(child) and time.monotonic() < until:
        time.sleep(0.05)
    assert not _lives(child)
    assert not (tmp_path / "r.pdf").exists()


def _lives(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_browser_that_prints_nothing_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _stand_in(tmp_path, "exit 1", monkeypatch)
    (tmp_path / "r.pdf").write_bytes(b"old")
    with pytest.raises(StorageError, match="printed nothing of"):
        write_pdf(tmp_path / "r.html", tmp_path / "r.pdf")
    assert (tmp_path / "r.pdf").read_bytes() == b"old"
