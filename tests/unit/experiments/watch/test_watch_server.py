"""The server of live pages: who is admitted, what every answer carries, what a stream sends."""

from __future__ import annotations

import json
import os
import socket
import stat
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest
import uvicorn
from livepage import Browser
from runfolder import write_run

from vflens.cli.watch import open_browser
from vflens.experiments.pages.page import plotly
from vflens.experiments.watch import server
from vflens.experiments.watch.page import RunsPage


class _Page:
    title = "a title"

    def __init__(self, *texts: str) -> None:
        self._texts = iter(texts)

    def panels(self, chosen: Mapping[str, str]) -> dict[str, str]:
        return {"one": next(self._texts), "two": "stays"}

    def report(self, chosen: Mapping[str, str]) -> str:
        return "<p>report"


def _admitted(*texts: str, readings: int = 1) -> Browser:
    return Browser(_Page(*texts), readings=readings).enter()


def test_the_token_serves_once() -> None:
    browser = Browser(_Page("first"))
    taken = browser.get(f"/?token={browser.access.token}", follow=False)
    assert taken.status_code == 303
    path = taken.headers["location"]
    assert len(path) > 20  # nobody guesses it
    assert {"HttpOnly", "SameSite=lax", f"Path={path}"} <= {
        part.strip() for part in taken.headers["set-cookie"].split(";")
    }
    browser.cookies.clear()
    again = browser.get(f"/?token={browser.access.token}")
    assert again.status_code == 403
    assert "serves once" in again.text


@pytest.mark.parametrize(
    "path", ["/", "/live", "/report.html", "/plotly.js", "/?token=guessed", "/elsewhere"]
)
def test_nobody_else_reads_anything(path: str) -> None:
    browser = Browser(_Page())
    assert browser.get(path).status_code == 403


def test_a_wrong_cookie_is_refused() -> None:
    browser = Browser(_Page())
    browser.cookies.set("vflens_1", "guessed")
    assert browser.get("/").status_code == 403
    assert browser.get(browser.access.path).status_code == 403


def test_neither_the_cookie_nor_the_path_alone_opens_the_page() -> None:
    """A browser sends the cookies of 127.0.0.1 to each port of it, where another user may listen."""
    browser = Browser(_Page("first"))
    (cookie,) = browser.enter().cookies.jar
    assert cookie.path == browser.access.path  # no other path, on any port, is sent the cookie
    elsewhere = httpx.Client(cookies=browser.cookies).build_request("GET", "http://127.0.0.1:2/")
    assert "cookie" not in elsewhere.headers
    other = Browser(_Page("first"))
    other.access = browser.access
    other.cookies.set("vflens_1", cookie.value or "")
    assert other.get("/").status_code == 403
    browser.cookies.clear()
    assert browser.get("/").status_code == 403


def test_a_browser_in_the_foreground_is_opened_once_the_page_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """It returns when its user leaves; until then the page answers it."""
    monkeypatch.setattr("os.nice", lambda by: 0)
    monkeypatch.setattr(server, "end_with_launcher", lambda: None)
    started: list[uvicorn.Server] = []
    run = uvicorn.Server.run
    answers: list[int] = []

    def noted(of: uvicorn.Server, sockets: list[socket.socket]) -> None:
        started.append(of)
        run(of, sockets)

    def opened(address: str) -> None:
        answers.append(httpx.get(address, follow_redirects=True, timeout=60).status_code)
        started[0].should_exit = True

    monkeypatch.setattr(uvicorn.Server, "run", noted)
    server.serve(_Page("first", "again"), opened)
    assert answers == [200]


def test_no_command_line_of_a_browser_holds_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every user of the machine reads it."""
    given: list[str] = []
    monkeypatch.setenv("DISPLAY", ":99")
    monkeypatch.setattr("webbrowser.open", given.append)
    open_browser("http://127.0.0.1:1/?token=secret")
    (uri,) = given
    file = Path(uri.removeprefix("file://"))
    assert "secret" not in uri
    assert "url=http://127.0.0.1:1/?token=secret" in file.read_text()
    assert [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent)] == [0o600, 0o700]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:1", "[::1]"])
def test_a_foreign_host_is_refused(host: str) -> None:
    browser = _admitted()
    assert browser.get("/", host=host).status_code == 400


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"])
def test_only_get_is_answered(method: str) -> None:
    assert _admitted().request(method, "/").status_code == 405


@pytest.mark.parametrize("path", ["/", "/report.html", "/plotly.js", "/nothing"])
def test_every_answer_has_a_policy(path: str) -> None:
    headers = _admitted(*"abc").get(path).headers
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "unsafe-eval" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"


def test_a_nonce_serves_one_page() -> None:
    browser = _admitted(*"abc")
    policies = {browser.get("/").headers["Content-Security-Policy"] for _ in range(2)}
    assert len(policies) == 2


def test_a_stream_sends_what_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vflens.experiments.watch.app._PAUSE_SECONDS", 0)
    monkeypatch.setattr("vflens.experiments.watch.app._IDLE_SHARE", 0)
    browser = _admitted("first", "first", "second", readings=3)
    lines = browser.get("/live").text.split("\n\n")
    sent = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    assert sent == [
        {"panel": "one", "html": "first"},
        {"panel": "two", "html": "stays"},
        {"panel": "one", "html": "second"},
    ]


def test_the_script_is_the_library() -> None:
    assert _admitted().get("/plotly.js").text == plotly()


def test_the_report_is_a_download() -> None:
    answer = _admitted().get("/report.html")
    assert answer.text == "<p>report"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="report.html"'


def test_a_page_of_runs_names_parties(tmp_path: Path) -> None:
    page = Browser(RunsPage([write_run(tmp_path / "demo")])).enter().get("/").text
    for party in ("passive", "active", "coordinator"):
        assert f"<td>{party}</td>" in page


@pytest.mark.parametrize("seconds", [10**15, -(10**12)])
def test_a_file_of_a_year_beyond_the_calendar_breaks_no_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    """Some file systems hold such times."""
    page = RunsPage([write_run(tmp_path / "demo")])
    found = Path.stat

    def odd(file: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        facts = found(file, follow_symlinks=follow_symlinks)
        return os.stat_result((*facts[:7], seconds, seconds, seconds))

    monkeypatch.setattr(Path, "stat", odd)
    assert "<td>passive</td>" in page.panels({})["parties"]
