"""``vflens watch`` as its user meets it: a process with a browser, Debian's Chromium by playwright."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import psutil
import pytest
from axe import serious
from browser import chromium, page
from commandline import Refused, Run, refused, vflens
from livepage import watching
from playwright.sync_api import Page, expect
from processes import ENVIRONMENT, experiment_file
from runfolder import crossing, write_party, write_pictures, write_run

from vflens.cli.screen.watched import Watched
from vflens.cli.watch import open_browser

_FIXTURES = (chromium, page, refused, vflens)  # used by name
PAINT = "performance.getEntriesByName('first-contentful-paint').map(entry => entry.startTime)"


def test_a_page_of_a_run(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The way from the file that a browser gets, first paint, names for screen readers, keyboard, dark and
    light, a phone, and the live update.
    """
    run = write_run(tmp_path / "demo")
    monkeypatch.setenv("DISPLAY", ":99")
    monkeypatch.setattr("webbrowser.open", page.goto)
    with watching(run) as (_, address):
        open_browser(address)
        expect(page.get_by_role("status")).to_have_text("live")
        (paint,) = page.evaluate(PAINT)
        assert paint < 20_000  # milliseconds, on a loaded machine; the benchmark has the figure
        assert "token" not in page.url
        expect(page.get_by_role("heading", level=1)).to_contain_text("reconstructs")
        expect(page.get_by_role("region", name="errors of attacks")).to_be_visible()
        expect(page.get_by_role("img", name="row 0, original")).to_be_attached()
        expect(
            page.get_by_role("group", name="passive, predict rows").locator(".main-svg").first
        ).to_be_attached()

        assert serious(page) == []
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="report as a file")).to_be_focused()
        page.keyboard.press("Tab")
        expect(page.get_by_role("region", name="parties")).to_be_focused()

        light = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.emulate_media(color_scheme="dark")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
        page.set_viewport_size({"width": 390, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") == 390

        write_party(run / "coordinator", "coordinator", status={"state": "failed", "reason": "disk full"})
        expect(page.get_by_text("disk full")).to_be_visible()
        expect(page.get_by_role("region", name="parties")).to_be_focused()  # the focus outlives the update

        with page.expect_download() as downloaded:
            page.get_by_role("link", name="report as a file").click()
        assert "<title>VFLens · demo</title>" in Path(downloaded.value.path()).read_text()


@pytest.mark.facts
def test_a_page_of_many_runs_and_pictures(page: Page, tmp_path: Path) -> None:
    attacks = [f"attack_{i}" for i in range(7)]
    write_run(tmp_path / "all" / "run-000", dict.fromkeys(attacks, 0.05))
    write_pictures(tmp_path / "all" / "run-000" / "passive", attacks, rows=6)  # 6 rows of 9 pictures
    for i in range(1, 200):
        lines = [crossing("coordinator", "train", "gradient")]
        facts: dict[str, list[str]] = {"parties": []}
        write_party(tmp_path / f"all/run-{i:03}" / "passive", "passive", crossings=lines, facts=facts)
    with watching(tmp_path / "all") as (_, address):
        page.goto(address)
        expect(page.get_by_role("status")).to_have_text("live")
        expect(page.locator("#pictures img")).to_have_count(54)
        links = page.locator("#parties").get_by_role("link")
        expect(links).to_have_count(200)
        last = links.nth(199)
        last.click()
        expect(page.locator("#parties [aria-current]")).to_have_count(1)
        expect(page.locator("#summary")).to_contain_text("run-199")
        # Nothing blocks the page's thread for long: a frozen page answers late.
        began = time.monotonic()
        page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)))")
        assert time.monotonic() - began < 60


def test_ctrl_c_ends_a_page_with_a_client(refused: Refused, tmp_path: Path) -> None:
    with watching(write_run(tmp_path / "demo")) as (process, address), httpx.Client() as client:
        page = client.get(address, follow_redirects=True)
        assert page.status_code == 200
        port = address.split(":")[2].split("/")[0]
        assert f"port {port}" in refused(2, "watch", tmp_path / "demo", "--port", port)
        with client.stream("GET", f"{page.url}live") as stream:
            lines = stream.iter_lines()
            assert next(lines).startswith("data: ")
            process.send_signal(signal.SIGINT)
            for _ in lines:  # to an orderly end of the stream
                pass
        assert process.wait(60) == 0


def test_a_run_shows_its_folder(vflens: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Path] = []
    monkeypatch.setattr(Watched, "show", lambda page, folder: shown.append(folder))
    file = experiment_file(tmp_path, scenarios=[{"name": "one"}, {"name": "two"}])
    assert vflens("run", file, "--in-process", "--watch").code == 0
    assert shown == [tmp_path / "runs/tiny"] * 2
    assert vflens("run", file, "--in-process").code == 0
    assert len(shown) == 2


@pytest.mark.facts
def test_a_page_beside_a_command_ends_with_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with Watched(True) as page:
        page.show(write_run(tmp_path / "demo"))
        text = ""
        while not (found := re.search(r"http://127\.0\.0\.1:\d+/", text)):
            time.sleep(0.05)
            text += capfd.readouterr().err
        assert httpx.get(found[0]).status_code == 403  # it answers, and the token is not in this address
    with pytest.raises(httpx.ConnectError):
        httpx.get(found[0])


@pytest.mark.facts
def test_a_page_on_a_terminal_stays_until_interrupted(tmp_path: Path) -> None:
    """After the command the page stays; Ctrl-C ends both, with the code of the command."""
    run, (leader, follower) = write_run(tmp_path / "demo"), os.openpty()
    code = (
        "import sys; from pathlib import Path; from vflens.cli.screen.watched import Watched\n"
        f"with Watched(True) as page: page.show(Path({str(run)!r}))\nsys.exit(3)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], env=ENVIRONMENT, stdin=follower, stderr=subprocess.PIPE, text=True
    ) as process:
        os.close(follower)
        assert process.stderr is not None
        text = ""
        while not re.search(r"stays until Ctrl-C[\s\S]*http|http[\s\S]*stays until Ctrl-C", text):
            text += process.stderr.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/", text)
        assert address is not None
        assert httpx.get(address[0]).status_code == 403
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 3
    os.close(leader)
    with pytest.raises(httpx.ConnectError):
        httpx.get(address[0])


def test_a_page_ends_with_a_command_that_was_killed(tmp_path: Path) -> None:
    code = (
        "import time; from pathlib import Path; from vflens.cli.screen.watched import Watched\n"
        f"with Watched(True) as page: page.show(Path({str(write_run(tmp_path / 'demo'))!r})); time.sleep(600)"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        address = re.search(r"http://127\.0\.0\.1:\d+/", process.stderr.readline())
        assert address is not None
        (page,) = psutil.Process(process.pid).children()
        process.kill()
        assert psutil.wait_procs([page], timeout=100)[1] == []
    with pytest.raises(httpx.ConnectError):
        httpx.get(address[0])


def test_a_missing_extra_is_named(refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    run = write_run(tmp_path / "demo")
    sentence = refused(2, "watch", run)
    assert "pip install './WHEEL[watch]'" in sentence
    assert "pip install './WHEEL[watch]'" in refused(2, "run", "examples/demo.toml", "--watch")


def test_a_folder_without_a_run_is_refused(refused: Refused, tmp_path: Path) -> None:
    assert "holds no run" in refused(3, "watch", tmp_path)
    assert "is no folder" in refused(3, "watch", tmp_path / "gone")
