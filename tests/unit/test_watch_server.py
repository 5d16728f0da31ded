"""The server of live pages: who is admitted, what every answer carries, what a stream sends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from livepage import Browser
from plotly.offline import get_plotlyjs
from runfolder import write_run

from vflens.experiments.watch.page import RunsPage


class _Page:
    title = "a title"

    def __init__(self, *texts: str) -> None:
        self._texts = iter(texts)

    def panels(self, chosen: Mapping[str, str]) -> dict[str, str]:
        return {"one": next(self._texts), "two": "stays"}

    def report(self) -> str:
        return "<p>report"


def _admitted(*texts: str, readings: int = 1) -> Browser:
    return Browser(_Page(*texts), readings=readings).enter()


def test_the_token_serves_once() -> None:
    browser = Browser(_Page("first"))
    taken = browser.get(f"/?token={browser.access.token}", follow=False)
    assert taken.status_code == 303
    assert taken.headers["location"] == "/"
    assert {"httponly", "samesite=strict"} <= {
        part.strip().lower() for part in taken.headers["set-cookie"].split(";")
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
    assert _admitted().get("/plotly.js").text == get_plotlyjs()


def test_the_report_is_a_download() -> None:
    answer = _admitted().get("/report.html")
    assert answer.text == "<p>report"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="report.html"'


def test_a_page_of_runs_names_parties(tmp_path: Path) -> None:
    page = Browser(RunsPage([write_run(tmp_path / "demo")])).enter().get("/").text
    for party in ("passive", "active", "coordinator"):
        assert f"<td>{party}</td>" in page
